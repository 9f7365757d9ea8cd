"""What leaves the building: the release folder, predictions and recommendations."""

from dpsr.release.atomic import atomic_folder, check_disk_space, check_target
from dpsr.release.folder.examination import load_release
from dpsr.release.folder.write import expected_bytes, write_release
from dpsr.release.lists.fold_in import FoldedInUser
from dpsr.release.lists.ranking import Recommendations
from dpsr.release.personalise import Personalised
from dpsr.release.release import Contents, Release
from dpsr.release.verify import Verification, verify

__all__ = [
    "Contents",
    "FoldedInUser",
    "Personalised",
    "Recommendations",
    "Release",
    "Verification",
    "atomic_folder",
    "check_disk_space",
    "check_target",
    "expected_bytes",
    "load_release",
    "verify",
    "write_release",
]
