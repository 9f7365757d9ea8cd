"""No made-up person is a real one by more than chance; a copied one is found."""

import numpy as np
import pyarrow as pa
import pytest

from dpsr import DPSR
from dpsr.data import realistic
from dpsr.evaluate.attacks.near_copies import attack_near_copies
from dpsr.synthesis import chances_met, items_met, propensities
from dpsr.types.item_side import ACTIVITY_BINS

RISK = 1e-6


@pytest.fixture(scope="module")
def world():
    """A release of half of the people; the others are held out."""
    ratings = realistic(3, n_users=500, n_items=300, n_ratings=9_000)
    train, held = (ratings[ratings.mask.users % 2 == side] for side in (0, 1))
    release = DPSR(5.0, unit="user", delta=1e-5, random_state=0).fit(train).release
    return release, train, held


def copied(release, table, train, person, share=1.0, changed=0):
    """The planted error: a made-up person who is a real one, wholly or in part, with the same ratings or others."""
    mask = train.mask
    here = slice(*mask.indptr[person : person + 2])
    keep = np.random.default_rng(0).random(here.stop - here.start) < share
    items = release.synthetic_items(mask.item_ids.take(pa.array(mask.items[here][keep])))
    user = np.full(len(items), table["user"].to_numpy().max() + 1)
    ratings = 1 + (train.values[here][keep] - 1 + changed) % 5
    return pa.concat_tables([table, pa.table({"user": user, "item": items, "rating": ratings})])


def assert_nobody_is_real(release, table, train, held):
    """What is asked of every table of made-up people."""
    found = attack_near_copies(release, table, train, held, risk=RISK)
    assert found.people > 100
    assert found.found == 0
    assert found.excess < np.log(1 / RISK)
    assert found.membership.epsilon_low < release.certificate.epsilon


def test_made_up_people_are_nobody(world):
    release, train, held = world
    assert_nobody_is_real(release, release.synthesise(), train, held)


@pytest.mark.parametrize(
    ("share", "changed"), [(1.0, 0), (0.8, 0), (1.0, 1)], ids=["whole", "in part", "with every rating changed"]
)
def test_a_planted_copy_of_a_real_person_fails_that_test(world, share, changed):
    release, train, held = world
    busy = int(np.argmax(train.mask.user_counts))
    table = copied(release, release.synthesise(), train, busy, share, changed)
    with pytest.raises(AssertionError, match=r"assert [0-9]+ == 0"):
        assert_nobody_is_real(release, table, train, held)


def test_a_table_of_real_people_is_told_from_held_out_ones(world):
    """The planted error at large: everybody was copied."""
    release, train, held = world
    mask = train.mask
    rows = {
        "user": mask.users.astype(np.int64),
        "item": release.synthetic_items(mask.item_ids.take(pa.array(mask.items))),
        "rating": train.values,
    }
    found = attack_near_copies(release, pa.table(rows), train, held)
    assert found.membership.advantage > 0.9


def test_the_chance_of_meeting_an_item_is_what_draws_show():
    counts, activity = 1_000 / np.arange(1, 101), np.eye(ACTIVITY_BINS)[3]
    p = propensities(counts, activity, activity)
    _, cells = items_met(np.full(4_000, 12), p, np.random.default_rng(0))
    np.testing.assert_allclose(np.bincount(cells, minlength=100) / 4_000, chances_met(12, p), atol=0.035)
