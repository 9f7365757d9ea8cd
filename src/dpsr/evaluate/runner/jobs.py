"""What is to be done: one job is one run on one split, with the key under which its result is kept.

A result is used again only for the same job on the same data with the same source code: the digest covers every module
that the measuring code can import, found by reading the import statements, so that a new chart invalidates nothing, and
a new attack no fit.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from dpsr.evaluate.sets import RatingSet

Row = dict[str, Any]
"""What a job has found, ready for JSON: one row of a tidy table."""


@dataclass(frozen=True)
class Job:
    """One run: `measure` ("module:function") looks at `what` on the split `seed` of a set.

    `what` names a method, a table that learners are given or an attack. `epsilon` is None for what takes no budget.
    `noise_seed` and `learner_seed` are the two streams of chance; `options` is whatever else the measure reads.
    """

    measure: str
    set: RatingSet
    what: str
    epsilon: float | None
    seed: int
    noise_seed: int
    learner_seed: int
    protocol: str
    delta: float = 1e-5
    options: tuple[tuple[str, Any], ...] = ()

    def option(self, name: str, default: Any = None) -> Any:
        """One of the options."""
        return dict(self.options).get(name, default)

    @property
    def key(self) -> dict[str, Any]:
        """Everything the result depends on. A file may be moved, so its content counts and not its path."""
        own = {name: value for name, value in asdict(self).items() if name != "set"}
        code = code_digest(self.measure.partition(":")[0], _outside(self.what))
        return {**own, "set": self.set.name, "data": self.set.digest, "code": code}

    @property
    def name(self) -> str:
        """A file name for its predictions, different for different keys."""
        return sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:24]

    def __str__(self) -> str:
        budget = "" if self.epsilon is None else f", ε {self.epsilon:g}"
        return f"{self.set.name}: {self.what}{budget}, seed {self.seed}"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        record = json.loads(text)
        return cls(**{**record, "set": RatingSet(**record["set"]), "options": _tuples(record["options"])})


class Seeds(NamedTuple):
    """The two streams of chance of one job."""

    noise: int
    learner: int


def noise_seed(*what: object) -> int:
    """A seed of its own for everything that is named differently, the same on every machine."""
    return int.from_bytes(sha256(repr(what).encode()).digest()[:4], "big")


def own_seeds(ratings: str, what: str, epsilon: float | None, seed: int) -> Seeds:
    """One seed for both streams, which belongs to one (set, method, epsilon, seed) alone."""
    own = noise_seed(ratings, what, epsilon, seed)
    return Seeds(own, own)


def cross(
    measure: str,
    sets: Sequence[RatingSet],
    whats: Sequence[tuple[str, bool]],
    epsilons: Sequence[float],
    seeds: Sequence[int],
    *,
    protocol: str,
    seeding: Callable[[str, str, float | None, int], Seeds] = own_seeds,
    **options: Any,
) -> list[Job]:
    """Every combination; `whats` says of each name whether it takes a budget."""
    return [
        Job(
            measure, ratings, what, epsilon, seed, *seeding(ratings.name, what, epsilon, seed), protocol,
            options=tuple(sorted(options.items())),
        )
        for seed in seeds
        for ratings in sets
        for what, budgeted in whats
        for epsilon in (epsilons if budgeted else (None,))
    ]  # fmt: skip


@cache
def code_digest(module: str, outside: str = "") -> str:
    """A digest of a module and of everything of this package that it can import, taken once a process.

    `outside` is a module that is not of this package and counts too, without what it imports.
    """
    files = reachable(module)
    spec = find_spec(outside) if outside else None
    if spec is not None and spec.origin is not None:
        files[outside] = Path(spec.origin)
    total = sha256()
    for name, path in sorted(files.items()):
        total.update(name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()[:16]


def reachable(start: str) -> dict[str, Path]:
    """Modules of this package that an import of `start` may lead to, at the top of a file or inside a function."""
    root = Path(__file__).parents[2]
    modules = {_dotted(path, root): path for path in root.rglob("*.py")}
    seen, todo = {start}, [start]
    while todo:
        for name in _imports(modules[todo.pop()]) & modules.keys() - seen - {root.name}:
            seen.add(name)
            todo.append(name)
    return {name: modules[name] for name in seen}


def _outside(what: str) -> str:
    """The module of a method that is not ours (`module:factory`), else nothing."""
    return what.partition(":")[0] if ":" in what else ""


def _tuples(value: Any) -> Any:
    """JSON has lists only."""
    return tuple(_tuples(one) for one in value) if isinstance(value, list) else value


def _dotted(path: Path, root: Path) -> str:
    return ".".join([root.name, *path.relative_to(root).with_suffix("").parts]).removesuffix(".__init__")


@cache
def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found
