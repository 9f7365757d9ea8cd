"""The last accepted ratios, and what has become worse since. Nothing here fails a test: a clock proves nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from benchmarks.registry import Ratio

FILE = Path(__file__).parent / "ratios.json"

ALLOWED = 0.2
"""The share of a stored ratio that may be lost before it is reported."""


def load(path: Path = FILE) -> dict[str, float]:
    """The accepted ratios by name; none if none were accepted."""
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def verdict(ratio: Ratio, stored: Mapping[str, float]) -> str | None:
    """A line for a ratio that lost more than a fifth, else None."""
    before = stored.get(ratio.name)
    if before is None or ratio.value is None or ratio.value >= (1 - ALLOWED) * before:
        return None
    return f"REGRESSED {ratio.name}: {before:.2f}x -> {ratio.value:.2f}x"


def accept(ratios: list[Ratio], path: Path = FILE) -> None:
    """Store what was measured in place of what was stored under the same names; the rest stays."""
    measured = {ratio.name: round(ratio.value, 3) for ratio in ratios if ratio.value is not None}
    path.write_text(json.dumps(dict(sorted({**load(path), **measured}.items())), indent=2) + "\n", "utf-8")
