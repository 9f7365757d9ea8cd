"""What is to be done: one job is one run of one kind on one split, with the key under which its result is kept.

A result is used again only for the same job on the same data with the same source code: the digest covers every module
that the measuring code can import, found by reading the import statements, so that a new chart invalidates nothing.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dpsr.evaluate.benchmark.sets import Source

MEASURING = "dpsr.evaluate.benchmark.work"
"""The module in which every number is made."""


@dataclass(frozen=True)
class Job:
    """One run. `what` names a method, an input of downstream learners or an attack; `effort` scales long ones."""

    kind: str
    source: Source
    what: str
    epsilon: float | None
    seed: int
    delta: float = 1e-5
    effort: int = 1

    @property
    def key(self) -> dict[str, Any]:
        """Everything the result depends on. A file may be moved, so its content counts and not its path."""
        own = {name: value for name, value in asdict(self).items() if name != "source"}
        return {**own, "set": self.source.name, "data": self.source.digest, "code": source_digest(_outside(self.what))}

    @property
    def name(self) -> str:
        """A file name for its details, different for different keys."""
        return sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:24]

    def __str__(self) -> str:
        budget = "" if self.epsilon is None else f", ε {self.epsilon:g}"
        return f"{self.source.name}: {self.what}{budget}, seed {self.seed}"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        record = json.loads(text)
        return cls(**{**record, "source": Source(**record["source"])})


def cross(
    kind: str,
    sources: Sequence[Source],
    whats: Sequence[tuple[str, bool]],
    epsilons: Sequence[float],
    seeds: Sequence[int],
    effort: int = 1,
) -> list[Job]:
    """Every combination; `whats` says of each name whether it takes a budget."""
    return [
        Job(kind, source, what, epsilon, seed, effort=effort)
        for seed in seeds
        for source in sources
        for what, budgeted in whats
        for epsilon in (epsilons if budgeted else (None,))
    ]


def _outside(what: str) -> str:
    """The module of a method that is not ours (`module:factory`), else nothing."""
    return what.partition(":")[0] if ":" in what else ""


@cache
def source_digest(extra: str = "") -> str:
    """A digest of the measuring code and of everything it can import, taken once a process."""
    files = {name: path.read_bytes() for name, path in sorted(_reachable(MEASURING).items())}
    spec = find_spec(extra) if extra else None
    if spec is not None and spec.origin is not None:
        files[extra] = Path(spec.origin).read_bytes()
    total = sha256()
    for name, content in files.items():
        total.update(name.encode() + b"\0" + content)
    return total.hexdigest()[:16]


def _reachable(start: str) -> dict[str, Path]:
    """Modules of this package that an import of `start` may lead to, at the top of a file or inside a function."""
    root = Path(__file__).parents[2]
    modules = {_dotted(path, root): path for path in root.rglob("*.py")}
    seen, todo = {start}, [start]
    while todo:
        for name in _imports(modules[todo.pop()]) & modules.keys() - seen - {root.name}:
            seen.add(name)
            todo.append(name)
    return {name: modules[name] for name in seen}


def _dotted(path: Path, root: Path) -> str:
    return ".".join([root.name, *path.relative_to(root).with_suffix("").parts]).removesuffix(".__init__")


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found
