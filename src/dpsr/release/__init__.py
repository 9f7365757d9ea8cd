"""What leaves the building: the release folder, predictions and recommendations."""

from dpsr.release.folder import expected_bytes, load_release
from dpsr.release.guest import Guest
from dpsr.release.place import check_room, check_target, placed
from dpsr.release.ranking import Recommendations
from dpsr.release.release import Release

__all__ = [
    "Guest",
    "Recommendations",
    "Release",
    "check_room",
    "check_target",
    "expected_bytes",
    "load_release",
    "placed",
]
