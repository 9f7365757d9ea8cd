"""`dpsr benchmark` as a shell sees it."""

import sys

import pytest

from dpsr.cli import main


@pytest.fixture
def shell(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["dpsr", "benchmark", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_a_small_run_with_everything_writes_and_shows_the_report(shell, tmp_path):
    ratings, out, document = tmp_path / "mine.csv", tmp_path / "out", tmp_path / "doc.md"
    lines = [f"{u},{j},{1 + (u * j) % 5}" for u in range(40) for j in range(20) if (u + j) % 2]
    ratings.write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    document.write_text("mine\n<!-- generated: rmse -->\n<!-- end: rmse -->\n")
    code, text, _ = shell(
        ratings, "--scale", "mine=1:5:1", "--methods", "dpsr,constant,als", "--epsilons", "1", "--seeds", "2",
        "--attacks", "--out", out, "--document", document, "--jobs", "2",
    )  # fmt: skip
    assert code == 0
    assert "mine: RMSE" in text
    assert "best guess" in text
    assert "mine: RMSE" in document.read_text()
    names = {path.name for path in out.iterdir()}
    wanted = {"benchmark.md", "benchmark.csv", "benchmark.parquet", "benchmark.json", "significance.csv", "attacks.csv"}
    assert wanted <= names
    for chart in ("frontier", "improvement", "popularity", "activity", "overlap", "calibration"):
        assert {f"{chart}_mine.{ending}" for ending in ("png", "svg", "csv")} <= names


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["nowhere.csv"], "Check the path"),
        (["paper", "--methods", "magic"], "methods are"),
        (["paper", "--methods", ","], "Write --methods dpsr,als"),
        (["paper", "--epsilons", "much"], "Write 0.5,1,3"),
        (["paper", "--epsilons", "-1"], "positive epsilon"),
    ],
)
def test_bad_input_is_one_sentence_and_code_two(shell, tmp_path, arguments, advice):
    code, _, err = shell(*arguments, "--out", tmp_path / "out")
    assert code == 2
    assert advice in err
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_an_interrupted_run_says_that_it_can_be_resumed(shell, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpsr.evaluate.runner.results.run_jobs", stop)
    code, _, err = shell("realistic", "--methods", "constant", "--out", tmp_path / "out")
    assert code == 130
    assert "the same command goes on from there" in err
