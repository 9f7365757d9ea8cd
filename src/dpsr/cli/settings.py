"""`dpsr.toml` in the current folder: what is always the same about a data set, so that no command needs it spelt out.

    scale = "0.5:5:0.5"
    ledger = "ledger.db"
    dataset = "films"
    items = "items.csv"

    [columns]
    user = "customer"
    rating = "stars"

What is given on the command line or in the environment comes first. Only commands that read these ratings or their
ledger look at it; a release that somebody else made is verified by what is said on the command line alone.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from dpsr.errors import ParameterError
from dpsr.quoting import quoted, quoted_list

FILE = Path("dpsr.toml")

_PLAIN: dict[str, type] = {
    "scale": str, "delimiter": str, "duplicates": str, "snap": bool, "ledger": str, "dataset": str, "items": str,
}  # fmt: skip
_COLUMNS = ("user", "item", "rating", "weight", "timestamp")
_READERS = ("release", "plan", "describe", "audit", "personalise")


def read_settings(file: Path = FILE) -> dict[str, Any]:
    """The settings by the name of their option; empty if there is no such file."""
    try:
        found = tomllib.loads(file.read_text("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ParameterError(f"{file.name} cannot be read ({str(error)[:120]}). Correct it, or remove it.") from error
    columns = found.pop("columns", {})
    unknown = [
        *(set(found) - set(_PLAIN)),
        *(set(columns) - set(_COLUMNS) if isinstance(columns, dict) else ["columns"]),
    ]
    if unknown:
        raise ParameterError(
            f"{file.name} holds {quoted_list(sorted(unknown))}, which nobody reads. It may hold {', '.join(_PLAIN)}, "
            f"and under [columns] {', '.join(_COLUMNS)}."
        )
    for name, value in {**found, **columns}.items():
        kind = _PLAIN.get(name, str)
        if not isinstance(value, kind):
            raise ParameterError(f"{file.name}: {name} is {quoted(value)}, and must be {_KINDS[kind]}.")
    return {**found, **columns}


_KINDS = {str: 'text in quotes, as in scale = "1:5:1"', bool: "true or false"}


def defaults(group: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """What each command takes from the settings: those of its own options, if it is one that reads these ratings."""
    taken = {name: _own(group.commands[name], settings) for name in _READERS}
    ledger = {name: value for name, value in settings.items() if name in ("ledger", "dataset")}
    taken["ledger"] = {name: _own(command, ledger) for name, command in group.commands["ledger"].commands.items()}
    return taken


def _own(command: Any, settings: dict[str, Any]) -> dict[str, Any]:
    names = {parameter.name for parameter in command.params}
    return {name: value for name, value in settings.items() if name in names}
