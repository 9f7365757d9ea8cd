"""From a request that has its form to an answer, for either kind of release: arrays and text, no HTTP.

    value            lists and predictions of released users; fold-in for somebody new
    rating, user     fold-in from the person's own ratings; predictions for a stranger; nobody has a list by name
    interactions     fold-in from what the person did, perhaps with weights; popularity; nobody has a list by name

A person's own ratings are arguments here and nothing else: no object that outlives the call holds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpsr.errors import DpsrError
from dpsr.release.likes import LikesRelease
from dpsr.release.lists.ranking import Recommendations
from dpsr.release.people import ItemRelease
from dpsr.release.release import Release
from dpsr.web.guard import Refusal

AnyRelease = Release | ItemRelease | LikesRelease
Record = dict[str, Any]

_NOBODY = (
    "This release protects {what} and knows nobody, so it has no list for a user by name. POST the person's own "
    "ratings to /v1/fold-in: they are used for the answer and forgotten."
)
_PROTECTED = {"user": "whole people", "rating": "that a rating exists"}
_DEFAULT_LENGTH = 10


def recommend(release: AnyRelease, asked: Record) -> Record:
    """Lists of released users, in the order asked for."""
    if not isinstance(release, Release):
        raise Refusal(403, _nobody(release))
    users, n, unknown = _ids(asked["users"]), asked.get("n", _DEFAULT_LENGTH), asked.get("unknown", "error")
    if unknown == "error":
        for place in (release.mask.user_codes(users) < 0).nonzero()[0][:1].tolist():
            raise Refusal(
                404,
                f"Every user must be in this release, and users[{place}] is not. Leave it out, send unknown: average, "
                "or POST their own ratings to /v1/fold-in.",
            )
    lists = (release.recommend(user, n, unknown="average") for user in users)
    return {"lists": [{"user": user, "list": _rows(found)} for user, found in zip(asked["users"], lists, strict=True)]}


def predict(release: AnyRelease, asked: Record) -> Record:
    """Predicted ratings of pairs; without users, what the average or an unknown person is expected to give."""
    items, users = _ids(asked["items"]), asked.get("users")
    if users is not None and not isinstance(release, Release):
        raise Refusal(403, _nobody(release) + " Leave users out for what a stranger is expected to give.")
    if users is not None and len(users) != len(items) and len(users) != 1:
        raise Refusal(
            422, f"There must be one user for all items or one for each, found {len(users)} and {len(items)}."
        )
    who = [""] if users is None else _ids(users)
    if not isinstance(release, Release):
        return {"predictions": release.predict([0] * len(items), items).tolist()}
    return {"predictions": release.predict(who * len(items) if len(who) == 1 else who, items).tolist()}


def fold_in(release: AnyRelease, asked: Record) -> Record:
    """A list for each person from their own ratings, and predictions for the items they ask about."""
    length = asked.get("n", _DEFAULT_LENGTH)
    return {
        "people": [
            _one_person(release, place, person, person.get("n", length)) for place, person in enumerate(asked["people"])
        ]
    }


def _one_person(release: AnyRelease, place: int, person: Record, n: int) -> Record:
    items = _ids([one["item"] for one in person["ratings"]])
    values = _values(release, place, person["ratings"])
    if len(set(items)) < len(items):
        raise Refusal(422, f"people[{place}].ratings must name every item once, and one is there twice.")
    try:
        answer: Record = {"list": _rows(release.fold_in(items, values, n))}
        if "items" in person:
            answer["predictions"] = _own_predictions(release, items, values, _ids(person["items"]))
    except DpsrError:
        raise Refusal(422, f"{_rule(release)}; one in people[{place}].ratings does not.") from None
    return answer


def _values(release: AnyRelease, place: int, ratings: list[Record]) -> list[float]:
    """What was given to each item; what was only done has the weight 1."""
    if not isinstance(release, LikesRelease) and any("rating" not in one for one in ratings):
        raise Refusal(422, f"{_rule(release)}; one in people[{place}].ratings has none.")
    return [float(one.get("rating", 1)) for one in ratings]


def _rule(release: AnyRelease) -> str:
    if isinstance(release, LikesRelease):
        return "Every rating must be a weight above 0, or be left out: this release holds what people did"
    scale = release.scale
    return (
        f"Every rating must lie on this release's scale, from {scale.low:g} to {scale.high:g} in steps of "
        f"{scale.step:g}"
    )


def _own_predictions(release: AnyRelease, items: list[str], values: list[float], wanted: list[str]) -> list[float]:
    if isinstance(release, LikesRelease):
        raise Refusal(422, "This release holds what people did and predicts no ratings. Leave items out.")
    if isinstance(release, ItemRelease):
        found: list[float] = release.predict_own(items, values, wanted).tolist()
        return found
    found = release.fold_in_user(items, values).predict(wanted).tolist()
    return found


def _ids(given: Sequence[str | int]) -> list[str]:
    """Ids as text: a release whose ids are numbers reads them as numbers again."""
    return [str(one) for one in given]


def _rows(found: Recommendations) -> list[Record]:
    titles = found.titles or [None] * len(found.items)
    rows = zip(found.items, found.scores.tolist(), titles, strict=True)
    return [
        {"item": item, "score": score, **({} if title is None else {"title": title})} for item, score, title in rows
    ]


def _nobody(release: ItemRelease | LikesRelease) -> str:
    return _NOBODY.format(what=_PROTECTED[release.certificate.unit])
