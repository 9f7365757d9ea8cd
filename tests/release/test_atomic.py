"""A table in a file of its own: whole or not at all, and nothing is left of a killed run."""

import os
import stat

import pyarrow as pa
import pytest

from dpsr.engine.work_folder import lock
from dpsr.errors import ReleaseError
from dpsr.release.atomic import atomic_table

ROWS = pa.table({"user": ["ann"], "item": ["i1"]})


def test_the_file_is_there_when_the_last_row_is(tmp_path):
    path = tmp_path / "lists.csv"
    with atomic_table(path, ROWS.schema) as rows:
        rows.write_table(ROWS)
        (draft,) = tmp_path.iterdir()
        assert stat.S_IMODE(draft.stat().st_mode) == 0o600
        assert not path.exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["lists.csv"]
    assert "ann" in path.read_text()


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError, ReleaseError])
def test_nothing_is_left_of_a_run_that_fails(tmp_path, stop):
    def write():
        with atomic_table(tmp_path / "lists.parquet", ROWS.schema) as rows:
            rows.write_table(ROWS)
            raise stop

    with pytest.raises((KeyboardInterrupt, ReleaseError)):
        write()
    assert not any(tmp_path.iterdir())


def test_the_draft_of_a_killed_run_is_removed_and_that_of_a_living_one_stays(tmp_path):
    """People's own lists, in a hidden file that nobody would ever have removed."""
    path = tmp_path / "lists[1].csv"
    dead, living = (tmp_path / f".lists[1].csv.{digit * 12}.partial" for digit in "01")
    others = [
        tmp_path / name for name in (".lists[1].csv.old.partial", ".lists1.csv.000000000000.partial", "lists.csv")
    ]
    for file in (dead, living, *others):
        file.write_text("ann,i1")
    (tmp_path / ".lists[1].csv.222222222222.partial").symlink_to(others[0])
    handle = lock(living)
    with atomic_table(path, ROWS.schema) as rows:
        rows.write_table(ROWS)
    os.close(handle)
    assert not dead.exists()
    assert all(file.exists() for file in (living, path, *others))
