"""The house and its rooms: data flow one way, and raw values stay on the curator's side."""

import ast
from pathlib import Path

import pytest

import dpsr

SOURCE = Path(dpsr.__file__).parent
MODULES = {
    ".".join(["dpsr", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__"): path
    for path in SOURCE.rglob("*.py")
}
RAW = {"dpsr.types.raw", "dpsr.engine.raw"}
CURATOR = {"data", "privacy", "evaluate", "audit", "pipeline", "doctor", "cli", "web", "__main__"}
KNOWS = {
    "errors": set(),
    "types": {"errors"},
    "linalg": {"errors"},
    "design": {"types", "errors", "linalg", "engine"},
    "engine": {"types", "errors", "linalg"},
    "data": {"types", "errors", "engine"},
    "privacy": {"types", "errors", "engine", "linalg"},
    "denoise": {"types", "errors", "engine", "linalg", "design"},
    "complete": {"types", "errors", "engine", "linalg", "design"},
    "release": {"types", "errors", "engine", "linalg"},
    "report": {"types", "errors", "release"},
    "pipeline": {
        "types", "errors", "engine", "linalg", "design", "data", "privacy", "denoise", "complete", "release", "report",
    },
    "audit": {"engine", "types", "errors", "data", "privacy", "release", "pipeline"},
    "doctor": {"types", "errors", "linalg", "privacy", "release"},
    "evaluate": {
        "types", "errors", "engine", "linalg", "design", "data", "privacy", "denoise", "complete", "release",
        "pipeline", "audit",
    },
}  # fmt: skip


def imports(path):
    """Every dpsr module a file imports, at its top or inside a function; type-checking imports count too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name in MODULES}


GRAPH = {name: imports(path) for name, path in MODULES.items()}


def room(module):
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def reach(module):
    """Everything an import of `module` can lead to, except through the front door `dpsr` itself."""
    seen, todo = set(), [module]
    while todo:
        for name in GRAPH[todo.pop()] - seen - {"dpsr"}:
            seen.add(name)
            todo.append(name)
    return seen


@pytest.mark.parametrize("module", sorted(name for name in MODULES if room(name) not in CURATOR and name != "dpsr"))
def test_nothing_outside_the_curators_side_can_reach_raw_values(module):
    if module in RAW:
        return
    assert not reach(module) & RAW
    assert "dpsr" not in GRAPH[module], "the front door leads everywhere"


def test_the_privacy_room_and_the_data_room_do_reach_raw_values():
    """The test above would pass on an empty graph; this one would not."""
    assert reach("dpsr.privacy.privatise") & RAW
    assert reach("dpsr.data.ratings") & RAW


@pytest.mark.parametrize("module", sorted(name for name in MODULES if room(name) in KNOWS))
def test_a_room_knows_only_the_rooms_below_it(module):
    others = {room(name) for name in GRAPH[module]} - {room(module), ""}
    assert others <= KNOWS[room(module)]


@pytest.mark.parametrize("path", MODULES.values(), ids=MODULES.keys())
def test_receipts_are_written_only_where_noise_is_drawn(path):
    if room(f"dpsr.{path.relative_to(SOURCE).parts[0]}") in {"privacy", "types"}:
        return
    calls = [node.func for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
    names = {call.id for call in calls if isinstance(call, ast.Name)}
    assert not names & {"Certificate", "Part", "PrivateRatings"}


@pytest.mark.parametrize("path", MODULES.values(), ids=MODULES.keys())
def test_no_pickles_no_eval_and_no_global_generator(path):
    text = path.read_text("utf-8")
    assert "pickle" not in {name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for name in
                            (alias.name for alias in node.names)}  # fmt: skip
    for word in ("allow_pickle=True", "np.random.seed(", "eval("):
        assert word not in text


def test_the_public_names_are_complete_and_sorted():
    assert dpsr.__all__ == sorted(dpsr.__all__)
    assert {"DPSR", "Ratings", "Scale", "load_release"} <= set(dpsr.__all__)
    for name in dpsr.__all__:
        assert getattr(dpsr, name).__doc__
