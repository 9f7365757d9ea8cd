"""What a package page shows: the README, whose links and pictures lead into the repository when it has an address.

A page at a package index knows no folder, so that `docs/unit.md` leads nowhere there. The repository's address is not
written into it; whoever publishes says it once, when building:

    DPSR_PROJECT_URL=https://example.org/somebody/dpsr python -m build

Files and pictures are then named as GitHub and GitLab name them. Without an address, links become their words and
pictures are left out, so that nothing on the page is broken.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

ADDRESS = "DPSR_PROJECT_URL"

_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^):]+)\)\n?")
_WITHOUT = "\nThe documentation lies in `docs/` of the source archive.\n"
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^):#]+)\)")


def page_of(readme: str, address: str) -> str:
    """The README for a page without folders; `address` is the repository's, or empty."""
    if not address:
        return _LINK.sub(r"\1", _PICTURE.sub("", readme)) + _WITHOUT
    with_pictures = _PICTURE.sub(rf"![\1]({address}/raw/HEAD/\2)\n", readme)
    return _LINK.sub(rf"[\1]({address}/blob/HEAD/\2)", with_pictures)


def urls_of(address: str) -> dict[str, str]:
    """Links beside the page; none are made up."""
    if not address:
        return {}
    pages = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md"}
    return {"Repository": address} | {name: f"{address}/blob/HEAD/{path}" for name, path in pages.items()}


class PackagePage(MetadataHookInterface):
    """Puts page and links into the metadata of wheel and sdist."""

    def update(self, metadata: dict[str, object]) -> None:
        address = os.environ.get(ADDRESS, "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": page_of(text, address)}
        metadata["urls"] = urls_of(address)
