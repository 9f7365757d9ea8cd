"""The house and its rooms: imports go down, data flow one way, and raw values stay where the README says they are."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import dpsr

SOURCE = Path(dpsr.__file__).parent
MODULES = {
    ".".join(["dpsr", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__"): path
    for path in SOURCE.rglob("*.py")
}
FLOORS = (
    {"errors", "arrays"},
    {"quoting", "database"},
    {"certify"},
    {"linalg"},
    {"types"},
    {"synthesis"},
    {"engine"},
    {"data", "privacy"},
    {"paper", "value", "people", "likes", "release"},
    {"report"},
    {"pipeline"},
    {"audit", "doctor"},
    {"evaluate"},
    {"web"},
    {"serve", "studio"},
    {"cli"},
)
"""From the ground up. A room knows the rooms below its own floor, and no other on it."""

FLOOR = {room: height for height, floor in enumerate(FLOORS) for room in floor}

RAW = {"dpsr.engine.raw"}
"""The types of rows and tables with their secret."""

OPENED = {"data", "privacy.vault", "audit", "evaluate"}
"""Where the secret itself may be read: brought in, asked for noisy answers, compared with on the curator's side."""

CARRIED = {"pipeline", "cli"}
"""Where the sealed table is handed on."""


@cache
def tree(name):
    return ast.parse(MODULES[name].read_text("utf-8"))


@cache
def imports(name):
    """Every dpsr module an import of `name` leads to at once, packages on the way and imports in functions included."""
    found = set()
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    ways = {".".join(one.split(".")[:depth]) for one in found for depth in range(2, one.count(".") + 2)}
    return {one for one in found | ways if one in MODULES} - {name}


def room(module):
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


ROOMS = sorted({room(name) for name in MODULES})


def for_every_module(*, but=frozenset()):
    """A test of one module becomes one test a room, which looks at each module in it and names the one that fails."""

    def over(check):
        def test(place):
            for module in sorted(name for name in MODULES if room(name) == place and name not in but):
                try:
                    check(module)
                except AssertionError as error:
                    raise AssertionError(f"{module}: {error}") from error

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return pytest.mark.parametrize("place", ROOMS, ids=lambda place: place or "dpsr")(test)

    return over


def is_in(module, rooms):
    return any(module == f"dpsr.{one}" or module.startswith(f"dpsr.{one}.") for one in rooms)


def reach(module):
    """Everything an import of `module` can lead to, except through the front door `dpsr` itself."""
    seen, todo = set(), [module]
    while todo:
        for name in imports(todo.pop()) - seen - {"dpsr"}:
            seen.add(name)
            todo.append(name)
    return seen


def test_a_module_that_fails_is_named_and_none_is_left_out():
    """A check that nothing passes, in every room; and one that looks."""

    def never(module):
        raise AssertionError("it never holds")

    looked = []
    check, others = for_every_module()(never), for_every_module(but=RAW)(looked.append)
    for place in ROOMS:
        with pytest.raises(AssertionError, match=r"^dpsr\S*: it never holds"):
            check(place)
        others(place)
    assert sorted([*looked, *RAW]) == sorted(MODULES)


def test_every_room_has_its_floor():
    assert {room(name) for name in MODULES} - {"", "__main__"} == set(FLOOR)


@for_every_module(but={"dpsr", "dpsr.__main__"})
def test_no_import_goes_up_or_sideways(module):
    others = {room(name) for name in imports(module)} - {room(module), ""}
    assert {other for other in others if FLOOR[other] >= FLOOR[room(module)]} == set()


@for_every_module(but=RAW | {"dpsr", "dpsr.__main__"})
def test_only_the_rooms_that_may_can_reach_raw_values(module):
    if not is_in(module, OPENED | CARRIED):
        assert not reach(module) & RAW
    if room(module) not in ("cli", "audit", "evaluate"):
        assert "dpsr" not in imports(module), "the front door leads everywhere"


OWN = {"OwnRows", "OpensOwnRows", "OwnRatings"}
"""Raw rows that are opened for the person they belong to, and what can open them."""


@for_every_module()
def test_own_rows_are_opened_only_where_their_own_person_is_served(module):
    if is_in(
        module,
        {"release.personalise", "release.nobody", "release.people", "release.likes", "types.personal", "engine.raw"},
    ):
        return
    calls = {
        node.func.attr
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert "own_rows" not in calls
    if module not in ("dpsr.types", "dpsr.release.release"):  # which hand the name on, and the sealed table
        names = {
            alias.name for node in ast.walk(tree(module)) if isinstance(node, ast.ImportFrom) for alias in node.names
        }
        assert not names & OWN


def test_what_writes_folders_cannot_reach_own_rows():
    """What is made from a person's own rows has one way into a folder, `Contents`, which refuses it."""
    for module in MODULES:
        if is_in(module, {"release.folder", "release.verify", "release.adapters", "report"}):
            assert not {one for one in imports(module) if is_in(one, {"release.personalise"})}


def test_rooms_that_should_reach_raw_values_do():
    """The test above would pass on an empty graph; this one would not."""
    for module in ("dpsr.privacy.vault.vault", "dpsr.data.ratings", "dpsr.pipeline.dpsr"):
        assert reach(module) & RAW


@for_every_module(but=RAW)
def test_the_secret_column_is_named_only_where_it_may_be_read(module):
    if is_in(module, OPENED):
        return
    for node in ast.walk(tree(module)):
        assert not (isinstance(node, ast.Name) and node.id == "LEVEL")
        assert not (isinstance(node, ast.Attribute) and node.attr == "levels")
        assert not (isinstance(node, ast.Constant) and node.value == "level")


@for_every_module()
def test_receipts_are_written_only_where_noise_is_drawn(module):
    if is_in(module, {"privacy.vault", "certify", "types"}):
        return
    calls = [node.func for node in ast.walk(tree(module)) if isinstance(node, ast.Call)]
    names = {call.id for call in calls if isinstance(call, ast.Name)}
    receipts = {name for name in names if name.endswith("Part")}
    assert not (names & {"Certificate", "PrivateRatings"}) | receipts


NUMERICAL = {"numpy", "scipy", "numba", "pyarrow", "pandas", "duckdb", "sklearn"}


@pytest.mark.parametrize("module", sorted(name for name in MODULES if room(name) == "certify"))
def test_checking_a_promise_needs_no_numerical_library(module):
    for name in {module} | reach(module):
        for node in ast.walk(tree(name)):
            tops = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            tops += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            assert not {top.split(".")[0] for top in tops} & NUMERICAL


@for_every_module()
def test_no_pickles_no_eval_and_no_global_generator(module):
    names = {alias.name for node in ast.walk(tree(module)) if isinstance(node, ast.Import) for alias in node.names}
    assert "pickle" not in names
    text = MODULES[module].read_text("utf-8")
    for word in ("allow_pickle=True", "np.random.seed(", "eval("):
        assert word not in text


def test_the_public_names_are_complete_and_sorted():
    assert dpsr.__all__ == sorted(dpsr.__all__)
    assert {"DPSR", "Ratings", "Scale", "load_release"} <= set(dpsr.__all__)
    for name in dpsr.__all__:
        assert getattr(dpsr, name).__doc__


def test_readme_shows_the_house_as_it_is():
    """Every folder is in the picture, and nothing else."""
    readme = (SOURCE.parents[1] / "README.md").read_text("utf-8")
    picture = readme.split("## The house")[1].split("```")[1]
    shown = {word.rstrip("/,") for line in picture.splitlines()[1:] for word in line.split("  ")[0].split(", ") if word}
    assert {one.strip() for one in shown if one.strip()} == set(FLOOR)


SAME_PART = {
    "a command, and what it calls": {
        "card", "compare", "explain", "frontier", "keys", "ledger", "likes", "plan", "release", "verify",
    },
    "the same stage or question at another unit, or where nobody rates": {
        "auditing", "budget", "contract", "evidence", "forecast", "levels", "people",
        "planted", "protocol", "questions", "registry", "scores", "vault",
    },
    "the same kind of thing, of another room": {
        "app", "catalogue", "check", "examination", "figures", "files", "fold_in", "frames", "kernels", "learners",
        "pages", "ranking", "running", "session", "study", "table", "tables",
    },
}  # fmt: skip
"""Names that several modules have, and why."""


def test_no_two_modules_share_a_name_unless_they_play_the_same_part():
    """What fails here wants a name that says what it is; or it is the same thing in another room, and is listed."""
    names = [name.rpartition(".")[2] for name, path in MODULES.items() if path.name != "__init__.py"]
    assert {name for name in names if names.count(name) > 1} == set().union(*SAME_PART.values())


def test_every_module_that_the_documentation_names_is_there():
    """And every folder that CONTRIBUTING sends a stranger to. What decisions name may be gone since."""
    root = SOURCE.parents[1]
    for page in (root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))):
        named = re.findall(r"`((?:[a-z_0-9]+/)+[a-z_0-9]+\.py)`", page.read_text("utf-8"))
        if page.name == "CONTRIBUTING.md":
            named += re.findall(r"`((?:[a-z_0-9]+/)+)`", page.read_text("utf-8"))
        missing = {name for name in named if not any((above / name).exists() for above in (SOURCE, root))}
        assert not missing, f"{page.name} names {', '.join(sorted(missing))}"
