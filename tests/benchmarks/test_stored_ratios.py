"""What `make bench` reports: ratios that lost more than a fifth, and nothing that could fail a test on time."""

import json
from pathlib import Path

import pytest
from benchmarks.registry import SECTIONS, Ratio, section
from benchmarks.timing import Seconds, in_turns, shorter

from benchmarks import stored

STORED = {"neighbours 1M": 2.1, "stage 3 1M": 5.0}


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("neighbours 1M", 1.5, "REGRESSED neighbours 1M: 2.10x -> 1.50x"),
        ("neighbours 1M", 1.67, "REGRESSED neighbours 1M: 2.10x -> 1.67x"),
        ("neighbours 1M", 1.69, None),
        ("neighbours 1M", 3.0, None),
        ("stage 3 1M", 4.0, None),
        ("stage 3 1M", 3.99, "REGRESSED stage 3 1M: 5.00x -> 3.99x"),
        ("never stored", 0.1, None),
        ("stage 3 1M", None, None),
    ],
)
def test_a_ratio_is_reported_when_it_lost_more_than_a_fifth(name: str, value: float | None, line: str | None) -> None:
    assert stored.verdict(Ratio(name, value, "detail"), STORED) == line


def test_accepting_replaces_what_was_measured_and_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "ratios.json"
    assert stored.load(path) == {}
    stored.accept([Ratio("a", 2.0, ""), Ratio("b", 3.14159, ""), Ratio("memory", None, "500 MB")], path)
    stored.accept([Ratio("a", 1.0, "")], path)
    assert stored.load(path) == {"a": 1.0, "b": 3.142}
    assert json.loads(path.read_text("utf-8")) == {"a": 1.0, "b": 3.142}


def test_the_accepted_ratios_are_positive_numbers_by_name() -> None:
    for name, value in stored.load().items():
        assert isinstance(name, str)
        assert value > 0


def test_a_section_is_registered_under_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.registry.SECTIONS", mine := dict(SECTIONS))

    @section("mine", "A section of mine")
    def body(quick: bool):  # type: ignore[no-untyped-def]
        yield Ratio("one", 1.0 + quick, "")

    assert mine["mine"].title == "A section of mine"
    assert [ratio.value for ratio in mine["mine"].run(True)] == [2.0]


def test_every_side_warms_up_once_and_then_runs_in_turns() -> None:
    calls: list[str] = []
    best = in_turns({name: lambda n=name: calls.append(n) for name in "ab"}, rounds=3)
    assert "".join(calls) == "ab" * 4
    assert all(seconds.wall >= 0 for seconds in best.values())


def test_a_side_that_took_too_long_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.timing.PATIENCE", -1.0)
    monkeypatch.setattr("benchmarks.timing.SLOW", -1.0)
    calls: list[str] = []
    in_turns({name: lambda n=name: calls.append(n) for name in "ab"}, rounds=3)
    assert "".join(calls) == "ab"


def test_the_shorter_run_counts_by_the_clock_and_by_the_processor() -> None:
    assert shorter(Seconds(1.0, 4.0), Seconds(2.0, 3.0)) == Seconds(1.0, 3.0)
