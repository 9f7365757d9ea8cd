"""The try-out: well-known things first, found by name, and a list from any kind of release."""

import pytest

from dpsr import DPSR, Interactions
from dpsr.data import realistic
from dpsr.studio import tryout

DONE = Interactions.from_arrays(
    [f"u{k}" for k in range(120) for _ in range(6)], [f"i{(k + 7 * j) % 40}" for k in range(120) for j in range(6)]
)


@pytest.fixture(scope="module", params=["value", "user", "likes"])
def release(request):
    if request.param == "likes":
        return DPSR(12.0, unit="user", delta=1e-5, items=[f"i{k}" for k in range(40)]).fit(DONE).release
    ratings = realistic(0, n_users=60, n_items=40, n_ratings=900)
    people = {"unit": "user", "delta": 1e-5, "items": ratings.mask.item_ids.to_pylist()}
    return DPSR(2.0, **(people if request.param == "user" else {})).fit(ratings).release


def test_what_is_rated_is_not_suggested_and_the_list_is_the_librarys(release):
    offered = tryout.items_to_rate(release, "")
    assert len(offered) == tryout.SHOWN
    step = float(tryout.levels_of(release)[0])
    rated = {thing.id: step for thing in offered[: tryout.WANTED]}
    found = tryout.suggestions(release, rated)
    assert [one.name for one in found] == [
        str(item) for item in release.fold_in(list(rated), list(rated.values())).items
    ]
    assert not {one.name for one in found} & set(rated)


def test_things_are_found_by_a_part_of_their_name(release):
    name = tryout.items_to_rate(release, "")[3].name
    assert name in [thing.name for thing in tryout.items_to_rate(release, name.upper())]
    assert tryout.items_to_rate(release, "no such thing") == []
