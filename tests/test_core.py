"""The core without its extras: what a plain `pip install dpsr` brings is enough to release, verify and recommend."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import in_turn
import pytest
from small_ratings import write_csv

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

ALONE = """
import sys
from importlib.abc import MetaPathFinder

class Refuse(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in REFUSED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

REFUSED = set(sys.argv[1].split(","))
sys.meta_path.insert(0, Refuse())
sys.path.insert(0, sys.argv[2])
from in_turn import main
main([command.split() for command in sys.argv[3:]])
"""


def distribution(requirement):
    return re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower().replace("_", "-")


def closure(requirements):
    """What these requirements bring, with everything they require themselves."""
    found, todo = set(), [distribution(one) for one in requirements]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            required = metadata.requires(name) or []
            todo += [distribution(one) for one in required if "extra ==" not in one and is_installed(distribution(one))]
    return found


def is_installed(name):
    try:
        return bool(metadata.version(name))
    except metadata.PackageNotFoundError:
        return False


@pytest.fixture(scope="module")
def refused():
    """Every module that is installed here and would not be with the core alone."""
    core = closure(PROJECT["dependencies"]) | {"dpsr", "pip", "setuptools"}
    owners = {module: {name.lower().replace("_", "-") for name in names} for module, names in
              metadata.packages_distributions().items()}  # fmt: skip
    return {module for module, names in owners.items() if not names & core and not module.startswith("_")}


def run(refused, folder, *commands):
    """How each command ended, all in one process that has the core alone."""
    arguments = [sys.executable, "-c", ALONE, ",".join(sorted(refused)), str(Path(in_turn.__file__).parent), *commands]
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return in_turn.outcomes(done.stderr)


def test_what_the_core_does_without_is_what_the_extras_say(refused):
    assert {"matplotlib", "sklearn", "duckdb", "pandas", "polars", "pyspark", "torch", "psycopg"} <= refused
    assert {"starlette", "uvicorn"} <= refused
    assert not {"numpy", "scipy", "numba", "pyarrow", "cryptography", "sqlalchemy", "jinja2"} & refused


def test_the_core_alone_releases_verifies_recommends_and_draws_cards(refused, tmp_path):
    write_csv(tmp_path / "ratings.csv")
    done = run(
        refused,
        tmp_path,
        "demo --out demo",
        "ledger init --ledger l.db --dataset films --epsilon 3",
        "release ratings.csv --scale 1:5:1 --epsilon 1 --out r --ledger l.db --yes",
        "verify r",
        "recommend r --user u1",
        "card r --out card.html",
        "plan ratings.csv --scale 1:5:1",
    )
    assert [one.returncode for one in done] == [0] * 7, [one.stderr for one in done]
    assert (tmp_path / "card.html").exists()


NEEDED = {
    "release ratings.csv --scale 1:5:1 --epsilon 1 --out r --yes --engine disk": "Install dpsr[disk]",
    "release ratings.csv --scale 1:5:1 --epsilon 1 --out r --yes --engine spark": "Install dpsr[spark]",
    "card r --out card.html --plots plots": "Install dpsr[plots]",
    "serve r": "Install dpsr[web]",
    "studio ratings.csv": "Install dpsr[web]",
}


@pytest.fixture(scope="module")
def refusals(refused, tmp_path_factory):
    """What each command says without its extra, and what all of them leave."""
    folder = tmp_path_factory.mktemp("core")
    write_csv(folder / "ratings.csv")
    return dict(zip(NEEDED, run(refused, folder, *NEEDED), strict=True)), folder


@pytest.mark.parametrize("command", NEEDED)
def test_what_an_extra_is_needed_for_says_which_and_leaves_nothing(refusals, command):
    done, folder = refusals
    assert done[command].returncode == 2
    assert NEEDED[command] in " ".join(done[command].stderr.split())
    assert [entry.name for entry in folder.iterdir()] == ["ratings.csv"]
