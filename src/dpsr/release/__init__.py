"""What leaves the building: the release folder, predictions and recommendations."""

from dpsr.release.contents import Contents
from dpsr.release.folder import expected_bytes, load_release, write_release
from dpsr.release.guest import Guest
from dpsr.release.manifest import certificate_digest
from dpsr.release.place import check_room, check_target, placed
from dpsr.release.ranking import Recommendations
from dpsr.release.release import Release
from dpsr.release.verify import Verification, verify

__all__ = [
    "Contents",
    "Guest",
    "Recommendations",
    "Release",
    "Verification",
    "certificate_digest",
    "check_room",
    "check_target",
    "expected_bytes",
    "load_release",
    "placed",
    "verify",
    "write_release",
]
