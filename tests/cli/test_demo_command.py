"""`dpsr demo`: the main job on an embedded sample."""

from dpsr import load_release


def test_the_demo_releases_the_sample_and_beats_the_constant(dpsr, tmp_path):
    outcome = dpsr("demo", "--out", tmp_path / "demo")
    assert outcome.code == 0, outcome.err
    cells = [[cell.strip() for cell in line.split("│")] for line in outcome.out.splitlines() if line.count("│") == 6]
    rows = {name: float(rmse) for _, name, rmse, *_ in cells}
    for name in ("unit value: the release", "unit value, personalised", "unit user, personalised"):
        assert rows[f"dpsr, {name}"] < rows["one constant"]
    assert rows["dpsr, unit value, personalised"] < rows["dpsr, unit value: the release"]
    assert "private: exact epsilon" in outcome.out
    page = tmp_path / "demo" / "card.html"
    assert "PRIVATE" in page.read_text("utf-8")
    assert page.as_uri() in outcome.out, "in one piece"
    release = load_release(tmp_path / "demo")
    assert release.certificate.private
    assert release.certificate.epsilon <= 1


def test_the_demo_shows_what_each_unit_protects_and_releases_both(dpsr, tmp_path):
    assert dpsr("demo", "--out", tmp_path / "demo").code == 0
    people = load_release(tmp_path / "demo-people")
    assert (people.certificate.unit, people.certificate.private) == ("user", True)
    assert people.certificate.epsilon <= 1
    page = (tmp_path / "demo-people" / "card.html").read_text("utf-8")
    assert "PEOPLE ARE PROTECTED" in page
    assert "who rated what is not" in (tmp_path / "demo" / "card.html").read_text("utf-8")
    assert dpsr("demo", "--out", tmp_path / "demo").code == 2, "nothing is replaced without --force"
    assert dpsr("demo", "--out", tmp_path / "demo", "--force").code == 0
