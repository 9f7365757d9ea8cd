"""Templates of the web edges, which escape what strangers wrote, and styles that begin with the card's own colours."""

from __future__ import annotations

from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from dpsr.report.card import source

SHEETS = "\n/* A page of dpsr: the card's colours and letters, then this page's own rules. */\n"


@lru_cache(maxsize=4)
def environment(package: str) -> Environment:
    """The templates in a package's `templates` folder."""
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def style(package: str, *names: str) -> str:
    """The card's colours and letters (everything before its first element), then a package's own rules."""
    colours = source("card.css").partition("* { box-sizing")[0]
    return colours + SHEETS + "".join(text(package, name) for name in names)


def text(package: str, name: str) -> str:
    """A file among the templates as it is."""
    loader = environment(package).loader
    assert loader is not None
    return loader.get_source(environment(package), name)[0]
