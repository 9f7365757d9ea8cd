"""The release that is served, and what has become of its folder meanwhile.

What was loaded was examined whole, as `dpsr verify` does, and stays in memory: a folder that is deleted or replaced
changes no answer. `state` says what became of it; `reload` examines what lies there now and takes it over whole, or
keeps what there is and says why.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpsr.certify.folder import MANIFEST, UnreadableError, read_plain, sha256_of
from dpsr.errors import DpsrError, PrivacyError
from dpsr.quoting import file_name
from dpsr.release.folder.examination import examined
from dpsr.release.folder.layout import MOST_BYTES
from dpsr.release.likes import LikesRelease
from dpsr.release.people import ItemRelease
from dpsr.release.release import Release

SAME, GONE, REPLACED = "as loaded", "gone", "replaced"


class Served:
    """One release in memory, and the folder it came from."""

    release: Release | ItemRelease | LikesRelease
    manifest_sha256: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.release, self.manifest_sha256 = _loaded(folder)

    def state(self) -> str:
        """Whether the folder still is what was loaded: by its manifest, which stands for all of it."""
        try:
            text = read_plain(self.folder / MANIFEST, MOST_BYTES[MANIFEST])
        except (UnreadableError, OSError):
            return GONE
        return SAME if sha256_of(text) == self.manifest_sha256 else REPLACED

    def reload(self) -> str:
        """Take over what lies in the folder now if it is whole and private; in words, what was done."""
        try:
            release, digest = _loaded(self.folder)
        except DpsrError as error:
            return f"Not reloaded, the release from before is still served: {error}"
        self.release, self.manifest_sha256 = release, digest
        return f"Reloaded: {digest}"

    def facts(self) -> dict[str, Any]:
        """What the release says of itself."""
        certificate, scale = self.release.certificate, self.release.scale
        likes, known = isinstance(self.release, LikesRelease), isinstance(self.release, Release)
        return {
            "manifest_sha256": self.manifest_sha256,
            "private": certificate.private,
            "unit": certificate.unit,
            "epsilon": certificate.epsilon,
            "delta": certificate.delta,
            "scale": None if likes else {"low": scale.low, "high": scale.high, "step": scale.step},
            "answers": [*(["recommend"] if known else []), "predict", "fold-in"],
        }


def _loaded(folder: Path) -> tuple[Release | ItemRelease | LikesRelease, str]:
    found = examined(folder)
    assert found.release is not None
    assert found.manifest_sha256 is not None
    if not found.release.certificate.private:
        reasons = "; ".join(found.release.certificate.reasons)
        raise PrivacyError(
            f"only a private release is served, and {file_name(folder)} is NOT PRIVATE: {reasons}. Serve another one."
        )
    return found.release, found.manifest_sha256
