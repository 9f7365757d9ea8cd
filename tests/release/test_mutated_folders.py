"""Folders changed at random, in a process that must not die: a slice of what `make fuzz` tries."""

from fuzz_folders import PROGRAM, run_cases

CASES = 150

ONCE_FATAL = [774, 2141, 5561, 5848, 9783]
"""Numbers beyond single precision in a model; a footer whose histogram ended the process."""


def test_folders_changed_at_random_are_refused_or_serve_and_nothing_dies():
    tally = run_cases([*ONCE_FATAL, *range(CASES)])
    assert tally.failed == {}
    assert tally.tried == CASES + len(ONCE_FATAL)
    assert 0 < tally.loaded < CASES, "some changes are harmless, and most are not"


def test_a_process_that_dies_is_seen_and_the_cases_behind_it_are_tried(tmp_path, monkeypatch):
    """The judge itself: a program that dies at case 3 is one failure among ten."""
    program = tmp_path / "dies.py"
    program.write_text(
        "import os, sys\n"
        "for case in map(int, sys.argv[2:]):\n"
        "    print(case, flush=True)\n"
        "    if case == 3: os.abort()\n"
        "print('loaded', 0)\n"
    )
    monkeypatch.setattr("fuzz_folders.PROGRAM", program)
    tally = run_cases(range(10))
    assert (tally.tried, list(tally.failed)) == (10, [3])
    assert PROGRAM.name == "mutated_folders.py"
