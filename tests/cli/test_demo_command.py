"""`dpsr demo`: the main job on an embedded sample. It is run twice in all: once, and once more over itself."""

import pytest

from dpsr import load_release


@pytest.fixture
def demo(dpsr, tmp_path):
    """A run of the demo, and what it said."""
    outcome = dpsr("demo", "--out", tmp_path / "demo")
    assert outcome.code == 0, outcome.err
    return outcome.out


def test_the_demo_releases_the_sample_for_both_units_and_replaces_it_when_told_to(demo, dpsr, tmp_path):
    cells = [[cell.strip() for cell in line.split("│")] for line in demo.splitlines() if line.count("│") == 6]
    rows = {name: float(rmse) for _, name, rmse, *_ in cells}
    for name in ("unit value: the release", "unit value, personalised", "unit user, personalised"):
        assert rows[f"dpsr, {name}"] < rows["one constant"]
    assert rows["dpsr, unit value, personalised"] < rows["dpsr, unit value: the release"]
    assert "private: exact epsilon" in demo
    assert "most rated first" in demo, "what popularity reaches"

    page = tmp_path / "demo" / "card.html"
    assert page.as_uri() in demo, "in one piece"
    assert "PRIVATE" in page.read_text("utf-8")
    assert "who rated what is not" in page.read_text("utf-8")
    release = load_release(tmp_path / "demo")
    assert release.certificate.private
    assert release.certificate.epsilon <= 1

    people = load_release(tmp_path / "demo-people")
    assert (people.certificate.unit, people.certificate.private) == ("user", True)
    assert people.certificate.epsilon <= 1
    assert "PEOPLE ARE PROTECTED" in (tmp_path / "demo-people" / "card.html").read_text("utf-8")

    assert dpsr("demo", "--out", tmp_path / "demo").code == 2, "nothing is replaced without --force"
    assert dpsr("demo", "--out", tmp_path / "demo", "--force").code == 0


def test_the_demo_does_not_touch_a_folder_of_somebody_elses(dpsr, tmp_path):
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "thesis.tex").write_text("years of work")
    refused = dpsr("demo", "--out", tmp_path / "demo")
    assert refused.code == 2
    assert "exists already" in refused.err
    assert not refused.out
    assert (tmp_path / "demo" / "thesis.tex").read_text() == "years of work"


def test_a_sample_that_finds_no_place_is_one_sentence(dpsr, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("mine", "utf-8")
    for place in (file, file / "sample"):  # both ended in a traceback
        outcome = dpsr("demo", "--sample", place)
        assert outcome.code == 2
        assert f"the sample could not be written to {place.name}: " in outcome.err
        assert "Choose a folder" in outcome.err
    assert file.read_text("utf-8") == "mine"
    (tmp_path / "half" / "items.csv").mkdir(parents=True)
    assert "half holds items.csv already" in dpsr("demo", "--sample", tmp_path / "half").err


def test_a_sample_that_finds_no_room_leaves_nothing(dpsr, tmp_path, monkeypatch):
    def full(self, *_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full)
    outcome = dpsr("demo", "--sample", tmp_path / "sample")
    assert outcome.code == 2
    assert "No space left on device" in outcome.err
    assert list((tmp_path / "sample").iterdir()) == []
