"""The release where people or ratings are protected: the item side, and what people's own ratings make of it."""

from dpsr.release.people.item_release import ItemRelease, check_takes_new_people
from dpsr.release.people.personalised import PersonalisedPeople

__all__ = ["ItemRelease", "PersonalisedPeople", "check_takes_new_people"]
