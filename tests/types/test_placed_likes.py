"""Places of one's own likes: the posterior by its formula, who is followed and who is not, and where ids come from."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import beta, dirichlet_multinomial

from dpsr.linalg.own_regression import PeopleRows
from dpsr.types.item_side import ACTIVITY_BINS, SIZES, Crowd, ItemIndex, hashed_cells
from dpsr.types.likes_side import LikesSide
from dpsr.types.placed_likes import MASSES, NO_STRETCHES, STRETCHES, PlacedLikes, mean_inverse_mass

ITEMS, AXES = 200, 3


def crowd_of(popularity):
    """Of so many people that all of popularity is what they did."""
    activity = np.zeros(ACTIVITY_BINS)
    activity[3] = popularity.sum() / SIZES[3]
    return Crowd(activity.sum(), activity, popularity, np.ones(ACTIVITY_BINS))


def side_of(popularity, taste=0.0, seed=0):
    """Popularity, and taste of the first half of the cells."""
    plain, rng, T = LikesSide.of_popularity(popularity), np.random.default_rng(seed), len(popularity) // 2
    crowd = crowd_of(popularity)
    if not taste:
        return replace(plain, crowd=crowd)
    centre = popularity[:T] / popularity[:T].sum()
    entry = taste * rng.normal(size=(T, AXES))
    gram = (entry**2 * centre[:, None]).sum(0)
    return LikesSide(popularity, np.arange(T), centre, entry, entry, np.zeros(T), np.ones(AXES), gram, "factors", crowd)


def index_of(ids):
    declared = pa.array(ids)
    return ItemIndex(declared, declared)


def rows_of(*people):
    people = [np.sort(np.asarray(one, dtype=np.int64)) for one in people]
    cells = np.concatenate(people).astype(np.int64)
    pointers = np.concatenate([[0], np.cumsum([len(one) for one in people])])
    return PeopleRows(pointers, cells, np.ones(len(cells)))


def tilts(placed, *people):
    return placed.people(rows_of(*people))[:, -STRETCHES:]


@pytest.fixture(scope="module")
def flat():
    return PlacedLikes(side_of(np.ones(ITEMS)), index_of(range(ITEMS)))


def in_stretch(placed, cells):
    """Of these, the ones that count."""
    return [cell for cell in cells if placed._counted[cell] >= 0]


def test_what_a_mass_makes_of_counts_is_the_dirichlet_multinomial():
    """Oracle: scipy's, of whole counts; the number of orders in which items came is the same for all masses."""
    counts, usual = np.array([6.0, 0.0, 1.0, 2.0]), np.array([0.4, 0.3, 0.2, 0.1])
    n = int(counts.sum())
    orders = gammaln(n + 1) - gammaln(counts + 1).sum()
    chances = [NO_STRETCHES * np.prod(usual**counts)]
    chances += [
        (1 - NO_STRETCHES)
        / len(MASSES)
        * np.exp(dirichlet_multinomial(a * usual, n).logpmf(counts.astype(int)) - orders)
        for a in MASSES
    ]
    expected = sum(chance / (n + a) for chance, a in zip(chances[1:], MASSES, strict=True)) / sum(chances)
    assert mean_inverse_mass(counts, usual) == pytest.approx(expected, rel=1e-9)
    assert abs(mean_inverse_mass(1.05 * counts, usual) / expected - 1) > 1e-3  # five per cent more would be found


def test_the_mean_of_shares_is_that_of_an_integral_over_them():
    """Oracle: two stretches, the posterior of the first one's share integrated numerically, and nothing at infinity."""
    h, m = np.array([7.0, 2.0]), np.array([0.3, 0.7])
    top, bottom = 0.0, NO_STRETCHES * m[0] ** 7 * m[1] ** 2
    for a in MASSES:
        weight, law = (1 - NO_STRETCHES) / len(MASSES), beta(a * m[0], a * m[1])
        top += weight * quad(lambda p, law=law: law.pdf(p) * p**7 * (1 - p) ** 2 * (p - m[0]), 0, 1)[0]
        bottom += weight * quad(lambda p, law=law: law.pdf(p) * p**7 * (1 - p) ** 2, 0, 1)[0]
    assert mean_inverse_mass(h, m) * (h[0] - 9 * m[0]) == pytest.approx(top / bottom, rel=1e-6)


def test_who_did_nothing_that_counts_has_popularity_and_taste_alone(flat):
    rare = np.flatnonzero(flat._counted < 0)[:5]
    assert not tilts(flat, [], rare).any()
    plain = flat.side.people(rows_of([], rare)) @ flat.side.items(np.arange(ITEMS)).T
    np.testing.assert_array_equal(flat.people(rows_of([], rare)) @ flat.items(np.arange(ITEMS)).T, plain)


def test_one_item_tells_nothing_of_a_mass_and_moves_a_score_by_what_is_believed_before(flat):
    """Extremal: each mass makes one item as likely as none does."""
    usual = np.full(STRETCHES, 1 / STRETCHES)
    one = np.eye(STRETCHES)[4]
    assert mean_inverse_mass(one, usual) == pytest.approx((1 - NO_STRETCHES) * np.mean(1 / (1 + np.array(MASSES))))
    (found,) = tilts(flat, in_stretch(flat, range(ITEMS))[:1])
    assert 0 < found.max() < 0.1
    assert found.min() > -0.01


def test_all_items_in_one_stretch_are_followed_and_the_more_the_further(flat):
    first = in_stretch(flat, range(ITEMS))
    found = [float(tilts(flat, first[:n])[0, 0]) for n in (1, 2, 4, 8)]
    assert found == sorted(found)
    assert found[-1] > 2
    assert tilts(flat, first[:8])[0, -1] < -0.3


def test_scattered_items_are_hardly_followed(flat):
    counted = in_stretch(flat, range(ITEMS))
    assert np.abs(tilts(flat, counted[::5])).max() < 0.02


def test_people_of_ids_without_meaning_stay_with_popularity():
    """Drawn by popularity alone; a twentieth moves by a tenth at most, and nobody far."""
    rng = np.random.default_rng(0)
    popularity = 1 / (5 + rng.permutation(ITEMS))
    placed = PlacedLikes(side_of(popularity), index_of(range(ITEMS)))
    people = [rng.choice(ITEMS, 20, replace=False, p=popularity / popularity.sum()) for _ in range(400)]
    moved = np.sqrt((tilts(placed, *people) ** 2).mean(axis=1))
    assert np.quantile(moved, 0.95) < 0.2
    assert np.median(moved) < 0.05


def test_a_stretch_that_taste_explains_adds_nothing_once_more():
    """Somebody whose taste is the stretch: with that taste known the tilt is a part of what it is without."""
    popularity = np.ones(ITEMS)
    early = np.where(np.arange(ITEMS) < ITEMS // 4, 1.0, -1.0)[: ITEMS // 2]
    taste = side_of(popularity, 1e-3)
    entry = np.column_stack([early, 0 * early, 0 * early])
    knows = replace(taste, entry=entry, exit=entry, gram=np.array([1.0, 1e-9, 1e-9]))
    index = index_of(range(ITEMS))
    own = in_stretch(PlacedLikes(knows, index), range(ITEMS // 4))[::4]
    without, with_taste = (np.abs(tilts(PlacedLikes(one, index), own)).max() for one in (taste, knows))
    assert len(own) > 5
    assert with_taste < 0.8 * without


def in_words(placed, cells):
    """Oracle: the formulas of the module for one person, with dense tents and no kernel."""
    side, met = placed.side, placed.side.crowd.met
    order = np.argsort(-met, kind="stable")
    known = order[np.cumsum(met[order]) - met[order] < 0.5 * met.sum()]
    weights = np.zeros(len(met))
    weights[known] = met[known]
    q = (np.cumsum(weights) - weights / 2) / weights.sum()
    middles = (np.arange(STRETCHES) + 0.5) / STRETCHES
    tents = np.maximum(1 - np.abs(np.clip(q, middles[0], middles[-1])[:, None] - middles) * STRETCHES, 0)
    scores = side.people(rows_of(cells)) @ side.items(np.arange(len(met))).T
    s, usual = weights @ tents / weights.sum(), (weights * (scores[0] / side.popularity)) @ tents / weights.sum()
    own = [cell for cell in cells if weights[cell] > 0]
    h, n, m = tents[own].sum(0), len(own), usual / usual.sum()
    bins = np.eye(STRETCHES)[np.clip(np.floor(q * STRETCHES), 0, STRETCHES - 1).astype(int)]
    whole = (weights * (scores[0] / side.popularity)) @ bins
    d = usual.sum() * mean_inverse_mass(bins[own].sum(0), whole / whole.sum()) * (h - n * m) / s
    return scores[0] + side.popularity * (tents @ d)


@pytest.mark.parametrize("taste", [0.0, 0.3])
def test_scores_are_those_of_the_formulas(taste):
    rng = np.random.default_rng(1)
    popularity = 1 / (5.0 + rng.permutation(ITEMS))
    placed = PlacedLikes(side_of(popularity, taste), index_of(range(ITEMS)))
    people = [np.arange(0, 60, 2), rng.choice(ITEMS, 30, replace=False), np.array([3])]
    found = placed.people(rows_of(*people)) @ placed.items(np.arange(ITEMS)).T
    for row, cells in zip(found, people, strict=True):
        np.testing.assert_allclose(row, in_words(placed, np.sort(cells)), rtol=1e-9)
    shifted = in_words(placed, np.sort((people[0] + 9) % ITEMS))
    assert np.abs(shifted - found[0]).max() > 1e-3  # places off by nine items would be found


def test_a_person_alone_and_among_others_has_the_same_bits():
    rng = np.random.default_rng(2)
    placed = PlacedLikes(side_of(1 / (5.0 + np.arange(ITEMS)), 0.3), index_of(range(ITEMS)))
    people = [rng.choice(ITEMS, n, replace=False) for n in (1, 5, 30, 100)]
    together = placed.people(rows_of(*people))
    for row, cells in zip(together, people, strict=True):
        np.testing.assert_array_equal(placed.people(rows_of(cells))[0], row)


def test_hashed_cells_have_the_scores_of_a_declared_list_where_all_items_are_named():
    ids = [str(7 * j) for j in range(ITEMS)]  # as texts they stand in another order than as numbers
    popularity = 1.0 / (5 + np.arange(ITEMS)[::-1])
    declared = PlacedLikes(side_of(popularity), index_of([7 * j for j in range(ITEMS)]))
    names = pa.array(sorted(ids))
    index = ItemIndex(None, names)
    cells = hashed_cells(pa.array(ids))
    assert len(set(cells)) == ITEMS
    everywhere = np.full(index.n_cells, 1e-12)
    everywhere[cells] = popularity
    hashed = PlacedLikes(side_of(everywhere), index)
    own = np.arange(120, 180, 3)
    expected = declared.people(rows_of(own)) @ declared.items(np.arange(ITEMS)).T
    found = hashed.people(rows_of(cells[own])) @ hashed.items(cells).T
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.abs(expected - popularity).max() > 1e-3


def test_nothing_is_placed_that_may_not_be_named():
    names = pa.array(["1", "2", "3"])
    placed = PlacedLikes(side_of(np.ones(1 << 16)), ItemIndex(None, names))
    others = np.setdiff1d(np.arange(1_000), hashed_cells(names))
    assert not placed.items(others)[:, -STRETCHES:].any()
    nobody = PlacedLikes(side_of(np.ones(1 << 16)), ItemIndex(None, pa.array([], pa.string())))
    assert np.isfinite(nobody.people(rows_of([1, 2, 3]))).all()


@pytest.mark.parametrize("n_items", [1, 2, 3])
def test_a_catalogue_of_few_items_has_finite_scores(n_items):
    placed = PlacedLikes(side_of(1.0 / (1 + np.arange(n_items))), index_of(range(n_items)))
    scores = placed.people(rows_of(np.arange(n_items), [0])) @ placed.items(np.arange(n_items)).T
    assert np.isfinite(scores).all()
