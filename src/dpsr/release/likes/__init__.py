"""The release where nobody rates: popularity and taste, and what people's own interactions make of it."""

from dpsr.release.likes.likes_release import LikesRelease
from dpsr.release.likes.personalised import PersonalisedLikes

__all__ = ["LikesRelease", "PersonalisedLikes"]
