"""Templates of the web edges, which escape what strangers wrote, and styles that begin with the card's own colours."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

SHEETS = "\n/* A page of dpsr: the card's colours and letters, then this page's own rules. */\n"


@lru_cache(maxsize=4)
def environment(package: str) -> Environment:
    """The templates in a package's `templates` folder."""
    return Environment(
        loader=FileSystemLoader(_templates(package)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def style(package: str, *names: str) -> str:
    """The card's colours and letters (everything before its first element), then a package's own rules."""
    colours = (_templates("dpsr.report") / "card.css").read_text("utf-8").partition("* { box-sizing")[0]
    return colours + SHEETS + "".join(text(package, name) for name in names)


def _templates(package: str) -> Path:
    """A package's folder of templates, found without importing the package: the card's would bring numpy along."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "templates"


def text(package: str, name: str) -> str:
    """A file among the templates as it is."""
    loader = environment(package).loader
    assert loader is not None
    return loader.get_source(environment(package), name)[0]
