"""Answers already given, kept in a working folder so that a killed run goes on where it stopped.

Every question is asked once: its receipt and its noisy answer are written together, under a temporary name first,
before anybody sees the answer. A run that resumes takes the answers it finds and draws only what was never answered.
Noise that was drawn and lost with its process was seen by nobody. The key is not here: a resumed run has a fresh one.

What is kept is private already, but for the folder around it (see `engine/disk.py`). The id of the charge that pays for
the answers is written down before the ledger is asked, so that a run that goes on is not charged for them again.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsr.arrays import AnyInts
from dpsr.certify import Part
from dpsr.engine.work_folder import CHARGE, RUN, create_private, sync
from dpsr.errors import DataError, PrivacyError


def noted_charge(folder: Path) -> str | None:
    """The id under which the run of a working folder was to be charged, if it came so far."""
    try:
        found = json.loads((folder / CHARGE).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not (folder / RUN).exists():  # left of a folder that was being cleared
        return None
    return found if isinstance(found, str) and re.fullmatch("[0-9a-f]{32}", found, re.ASCII) else None


class Journal:
    """The answers of one run, in order; `claim` says which run it is, in public terms."""

    def __init__(self, folder: Path, claim: dict[str, Any]) -> None:
        self._folder, self._next = folder, 0
        start = folder / RUN
        if start.exists() and json.loads(start.read_text("utf-8")) != claim:
            raise PrivacyError(
                "the working folder belongs to another run: its ratings or their values, how they are read, the "
                "method, unit, epsilon, delta, --items or --memory differ. Nothing was drawn. Give an empty folder "
                "with --work, or the same command again."
            )
        _write(start, claim)

    def answered(self, part: Part, about: str = "") -> npt.NDArray[np.int64] | None:
        """The answer to the next question if it was given before; a different question there is refused.

        What a question was `about` is what its part leaves open: whom it asked, as a digest.
        """
        path = self._folder / f"answer-{self._next:03d}.json"
        if not path.exists():
            return None
        record = json.loads(path.read_text("utf-8"))
        if record["part"] != _plain(part) or record.get("about", "") != about:
            raise PrivacyError(
                "the working folder holds the answer to another question, so this version of dpsr cannot go on with "
                "it. Nothing was drawn. Give an empty folder with --work."
            )
        self._next += 1
        return np.array(record["values"], dtype=np.int64)

    def keep(self, part: Part, values: AnyInts, about: str = "") -> None:
        """Receipt and answer, together or not at all."""
        record = {"part": _plain(part), "about": about, "values": values.tolist()}
        _write(self._folder / f"answer-{self._next:03d}.json", record)
        self._next += 1

    def note_charge(self, charge_id: str) -> None:
        """Write down the id under which this run is to be charged, before it is."""
        _write(self._folder / CHARGE, charge_id)

    def notes_charge(self, charge_id: str) -> bool:
        """Whether the folder still says so: somebody may have deleted it meanwhile."""
        return noted_charge(self._folder) == charge_id

    def forget_charge(self) -> None:
        """It was refused."""
        (self._folder / CHARGE).unlink(missing_ok=True)


def _plain(part: Part) -> Any:
    return json.loads(json.dumps(part.to_record()))


def _write(path: Path, record: Any) -> None:
    draft = path.with_suffix(".partial")
    try:
        with create_private(draft).open("w", encoding="utf-8") as file:
            json.dump(record, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
        with suppress(OSError):  # some network disks cannot force a folder
            sync(path.parent)  # or a power cut would take the name of a charge that the ledger has
    except OSError as error:
        raise DataError(
            f"the working folder could not be written: {error.strerror or error}. Nothing was released. Make room "
            "there, or give another one (--work FOLDER), and run again."
        ) from error
