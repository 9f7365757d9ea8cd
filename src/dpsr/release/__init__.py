"""What leaves the building: the release folder, predictions and recommendations."""

from dpsr.release.folder import check_target, load_release
from dpsr.release.release import Recommendations, Release

__all__ = ["Recommendations", "Release", "check_target", "load_release"]
