"""`dpsr demo`: the main job on an embedded sample."""

from dpsr import load_release


def test_the_demo_releases_the_sample_and_beats_the_constant(dpsr, tmp_path):
    outcome = dpsr("demo", "--out", tmp_path / "demo")
    assert outcome.code == 0, outcome.err
    rows = {line.split("│")[1].strip(): float(line.split("│")[2]) for line in outcome.out.splitlines() if "│" in line}
    assert rows["dpsr, private at epsilon = 1"] < rows["one constant"]
    assert "private: exact epsilon" in outcome.out
    page = tmp_path / "demo" / "card.html"
    assert "PRIVATE" in page.read_text("utf-8")
    assert page.as_uri() in outcome.out
    release = load_release(tmp_path / "demo")
    assert release.certificate.private
    assert release.certificate.epsilon <= 1
