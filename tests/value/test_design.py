"""Public features: what the mask alone says about users and items, against dense linear algebra and loops."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from dpsr.engine import MemoryTable
from dpsr.types import Mask
from dpsr.value.design import (
    PLACES,
    RANK,
    Design,
    item_places,
    mask_embeddings,
    mask_structure,
    mean_activity,
    public_features,
    standardise,
    with_one_more,
)
from dpsr.value.priors import COEFFICIENT


def mask_of(dense):
    """The mask of a 0/1 matrix."""
    m, n = dense.shape
    ids = (pa.array(np.arange(size, dtype=np.int64)) for size in (m, n))
    return Mask.of_cells(np.flatnonzero(dense.ravel()), *ids)


def embed(mask, rank):
    return mask_embeddings(MemoryTable(mask), rank)


def communities(seed=0, m=60, n=45, groups=4, inside=0.5, outside=0.06):
    """Users and items in groups that mostly rate their own: a spectral gap after `groups` pairs."""
    rng = np.random.default_rng(seed)
    same = np.arange(m)[:, None] % groups == np.arange(n) % groups
    return (rng.random((m, n)) < np.where(same, inside, outside)).astype(int)


def normalised(dense, regularised=True):
    """Oracle: (D_u + n)^-1/2 M (D_j + c)^-1/2 with the average degree of those that have any, or without it."""
    rows, columns = dense.sum(axis=1), dense.sum(axis=0)
    extra_u = dense.sum() / (rows > 0).sum() if regularised else 0
    extra_j = dense.sum() / (columns > 0).sum() if regularised else 0
    left, right = 1 / np.sqrt(np.maximum(rows + extra_u, 1e-9)), 1 / np.sqrt(np.maximum(columns + extra_j, 1e-9))
    return dense * left[:, None] * right, left, right


def overlap(a, b):
    """The cosines of the principal angles between two column spaces."""
    qa, qb = np.linalg.qr(a)[0], np.linalg.qr(b)[0]
    return np.linalg.svd(qa.T @ qb, compute_uv=False)


def test_embeddings_span_the_singular_vectors_after_the_first_of_the_regularised_mask():
    dense = communities()
    mask = mask_of(dense)
    N, left, right = normalised(dense)
    U, _, Vt = np.linalg.svd(N, full_matrices=False)
    embeddings = embed(mask, 3)
    P, Q = embeddings.users, embeddings.items
    assert P.shape == (60, 3)
    assert Q.shape == (45, 3)
    assert overlap(P / left[:, None], U[:, 1:4]).min() > 0.999
    assert overlap(Q / right[:, None], Vt[1:4].T).min() > 0.999
    assert overlap(P / left[:, None], U[:, :1]).max() < 0.05, "the first pair is popularity and is left out"


def test_embeddings_are_singular_vectors_divided_by_the_root_of_the_regularised_count():
    dense = communities(1)
    mask = mask_of(dense)
    N, left, right = normalised(dense)
    embeddings = embed(mask, 3)
    P, Q = embeddings.users, embeddings.items
    U, V = P / left[:, None], Q / right[:, None]
    np.testing.assert_allclose(U.T @ U, np.eye(3), atol=1e-6)
    np.testing.assert_allclose(V.T @ V, np.eye(3), atol=1e-6)
    S = np.linalg.svd(N, compute_uv=False)[1:4]
    np.testing.assert_allclose(U.T @ N @ V, np.diag(S), atol=0.01)


def test_the_affinity_is_the_best_low_rank_picture_of_the_mask_undone_from_its_normalisation():
    dense = communities(1)
    found = embed(mask_of(dense), RANK)
    assert found.structure > 0
    np.testing.assert_allclose(met(found), picture(dense, RANK + 1), atol=1e-6)


def test_where_the_mask_has_no_structure_who_meets_what_follows_from_counts_alone():
    dense = (np.random.default_rng(0).random((300, 200)) < np.linspace(0.1, 0.4, 200)).astype(int)
    found = embed(mask_of(dense), RANK)
    assert found.structure == 0
    np.testing.assert_allclose(met(found), picture(dense, 1), atol=0.02)
    assert np.corrcoef(met(found).sum(axis=0), dense.sum(axis=0))[0, 1] > 0.99


def met(embeddings):
    """How likely everybody is to meet everything, as the affinity says."""
    return embeddings.affinity.users @ embeddings.affinity.items.T


def picture(dense, rank):
    """Oracle: the best matrix of this rank for the normalised mask, undone from the normalisation."""
    N, left, right = normalised(dense)
    U, S, Vt = np.linalg.svd(N, full_matrices=False)
    return (U[:, :rank] * S[:rank]) @ Vt[:rank] / left[:, None] / right


def island():
    """A connected crowd, and two people who rated nothing but the same two items nobody else did."""
    dense = np.zeros((62, 42), dtype=int)
    dense[:60, :40] = communities(2, 60, 40)
    dense[60:, 40:] = 1
    return dense


def test_an_island_of_two_users_does_not_get_a_leading_vector_of_its_own():
    dense = island()
    mask = mask_of(dense)
    without = np.linalg.svd(normalised(dense, regularised=False)[0])[0][:, :2]
    alone = np.linalg.svd(without[60:], compute_uv=False).max()
    assert alone > 0.999, "without the regularisation the island is one of the two leading vectors"
    _, left, _ = normalised(dense)
    P = embed(mask, 3).users
    assert np.linalg.svd((P / left[:, None])[60:], compute_uv=False).max() < 0.3


def standardised_by_hand(column, weight):
    """Oracle: centre, scale to unit weighted mean square, cut at three; twice."""
    for _ in range(2):
        mean = sum(w * v for w, v in zip(weight, column, strict=True)) / sum(weight)
        size = np.sqrt(sum(w * (v - mean) ** 2 for w, v in zip(weight, column, strict=True)) / sum(weight))
        column = [min(max((v - mean) / size, -3.0), 3.0) for v in column]
    return np.array(column)


def plain_by_hand(dense):
    """Oracle for users: log count and its square."""
    counts = dense.sum(axis=1)
    log_count = standardised_by_hand([np.log(1 + c) for c in counts], counts)
    square = standardised_by_hand([min(v * v, 6.0) for v in log_count], counts)
    log_count = standardised_by_hand(log_count, counts)  # it was cut before it was squared, and is standardised again
    return np.column_stack([np.ones(len(dense)), log_count, square])


def test_count_features_are_those_of_a_plain_loop_on_both_sides():
    dense = communities(3)
    dense[4], dense[:, 7] = 1, 1  # an outlier on either side
    mask = mask_of(dense)
    x, z = public_features(MemoryTable(mask), embed(mask, 2), 2)
    np.testing.assert_allclose(x[:, :3], plain_by_hand(dense), atol=1e-9)
    np.testing.assert_allclose(np.delete(z, [1, 2, 3], axis=1)[:, :3], plain_by_hand(dense.T), atol=1e-9)


def test_the_activity_of_an_items_users_is_that_of_a_plain_loop_and_little_where_they_are_few():
    dense = communities(3)
    dense[:, 7] = 0
    dense[4, 7] = 1  # one rating
    logs, average = [np.log(1 + n) for n in dense.sum(axis=1)], dense.sum() / dense.shape[1]
    typical = sum(logs[u] for u, _ in zip(*np.nonzero(dense), strict=True)) / dense.sum()
    wanted = [sum(logs[u] - typical for u in np.flatnonzero(column)) / (column.sum() + average) for column in dense.T]
    mask = mask_of(dense)
    np.testing.assert_allclose(mean_activity(MemoryTable(mask)), wanted, atol=1e-12)
    z = public_features(MemoryTable(mask), embed(mask, 2), 2)[1]
    np.testing.assert_allclose(z[:, 3], standardised_by_hand(wanted, dense.sum(axis=0)), atol=1e-9)
    alone = abs(logs[4] - typical)
    assert abs(wanted[7]) < alone / average


def test_places_are_those_of_a_plain_loop_over_the_order_of_ids():
    dense = communities(3)
    dense[:, 11] = 0  # an item that nobody rated has its place all the same
    counts, before, q = dense.sum(axis=0), 0.0, []
    for count in counts:
        q.append((before + count / 2) / counts.sum())
        before += count
    mask = mask_of(dense)
    z = public_features(MemoryTable(mask), embed(mask, 2), 2)[1]
    for k in (1, 2):
        wanted = standardised_by_hand([np.cos(np.pi * k * one) for one in q], counts)
        np.testing.assert_allclose(z[:, k], wanted, atol=1e-9)
    assert item_places(np.zeros(0), 2).shape == (0, 2)


def test_places_follow_the_order_of_ids_and_everything_else_does_not():
    dense = communities(5)
    turned = np.arange(dense.shape[1])[::-1]
    there, back = (Design.of(mask_of(one)) for one in (dense, dense[:, turned]))
    assert there.places == back.places == PLACES
    np.testing.assert_allclose(back.z[turned, 1], -there.z[:, 1], atol=1e-9)
    np.testing.assert_allclose(back.z[turned, 2], there.z[:, 2], atol=1e-9)
    np.testing.assert_allclose(back.z[turned, 3:6], there.z[:, 3:6], atol=1e-9)
    assert there.contrasts.n == there.x.shape[1] - 1
    largest = np.abs(there.z[:, 2 + PLACES :]).argmax(axis=1)
    np.testing.assert_array_equal(np.abs(there.contrasts.items) - 1, largest)


def test_where_the_mask_shows_nothing_there_are_no_places():
    design = Design.of(mask_of((np.random.default_rng(0).random((80, 60)) < 0.3).astype(int)))
    assert design.structure == 0
    assert design.places == 0
    assert design.z.shape[1] == design.x.shape[1] + 1
    assert Design.of(mask_of(communities(5)), places=0).z.shape[1] == 4 + RANK


def test_standardised_columns_have_weighted_mean_zero_and_unit_mean_square():
    rng = np.random.default_rng(4)
    columns, weight = rng.uniform(5, 9, (200, 3)), rng.integers(0, 20, 200).astype(float)
    plain = standardise(columns, weight)
    np.testing.assert_allclose(weight @ plain / weight.sum(), 0, atol=1e-12)
    np.testing.assert_allclose(weight @ plain**2 / weight.sum(), 1, rtol=1e-12)
    np.testing.assert_allclose(standardise(3 * columns - 7, weight), plain, atol=1e-10)


def test_standardising_cuts_outliers_and_silences_constants():
    columns = np.column_stack([np.r_[np.zeros(99), 1e6], np.full(100, 2.5)])
    plain = standardise(columns, np.ones(100))
    assert np.abs(plain).max() <= 3
    assert (plain[:, 1] == 0).all()


def test_every_feature_is_centred_over_ratings_within_what_the_cut_leaves():
    design = Design.of(mask_of(communities(5)))
    for features, counts in ((design.x, design.user_counts), (design.z, design.item_counts)):
        assert np.abs(counts @ features[:, 1:] / counts.sum()).max() < 0.1
        size = counts @ features[:, 1:] ** 2 / counts.sum()
        assert size.min() > 0.8
        assert size.max() < 1 + 1e-9


def test_a_row_without_ratings_takes_the_mean_features_of_the_rarest_rows():
    dense = communities(6)
    dense[[3, 17]], dense[:, 5] = 0, 0
    dense[8] = 0
    dense[8, 2] = dense[9, 2] = 1
    dense[9, 3:] = 0
    dense[9, :2] = 0
    mask = mask_of(dense)
    design = Design.of(mask)
    items = np.delete(design.z, [1, 2], axis=1)  # its place is known
    for features, counts in ((design.x, design.user_counts), (items, design.item_counts)):
        rarest = features[counts == counts[counts > 0].min()].mean(axis=0)
        assert (counts == 0).any()
        np.testing.assert_allclose(features[counts == 0], np.tile(rarest, ((counts == 0).sum(), 1)), atol=1e-12)


@pytest.mark.parametrize(
    "dense",
    [
        np.ones((2, 2)), np.eye(2), np.array([[1, 0], [0, 0]]), np.ones((3, 3)), np.ones((2, 40)), np.eye(5, 30),
        np.ones((30, 5)), np.triu(np.ones((6, 6))),
    ],
    ids=["full 2x2", "diagonal 2x2", "one rating", "full 3x3", "two rows", "strangers", "full", "staircase"],
)  # fmt: skip
def test_the_smallest_masks_have_finite_features(dense):
    design = Design.of(mask_of(dense.astype(int)))
    assert np.isfinite(design.x).all()
    assert np.isfinite(design.z).all()
    assert design.x.shape == (dense.shape[0], 3 + design.embedding)
    assert design.z.shape == (dense.shape[1], 4 + design.embedding)
    assert max(np.abs(design.x).max(), np.abs(design.z).max()) <= 3


def test_a_mask_of_two_users_has_no_embedding():
    mask = mask_of(np.ones((2, 40), dtype=int))
    embeddings = embed(mask, 8)
    assert embeddings.users.shape == (2, 0)
    assert embeddings.items.shape == (40, 0)


def test_features_depend_on_who_rated_what_and_the_order_of_items_and_on_nothing_else_in_the_mask():
    mask = mask_of(communities(7))
    times = np.arange(mask.n_ratings, dtype=np.int64)
    names = pa.array([f"user {u:03d}" for u in range(mask.n_users)])
    other = Design.of(replace(mask, timestamps=times, user_ids=names))
    design = Design.of(mask)
    np.testing.assert_array_equal(design.x, other.x)
    np.testing.assert_array_equal(design.z, other.z)


def test_every_weight_has_one_group():
    design = Design.of(mask_of(communities(8)), rank=2)
    q, d = 6, 5
    expected = np.full((q, d), 5)
    for j in range(q):
        for u in range(d):
            if j == 0 and u == 0:
                expected[j, u] = 0
            elif u == 0:
                expected[j, u] = 1 if j < 4 else 2
            elif j == 0:
                expected[j, u] = 3 if u < 3 else 4
    expected[2, 1:] = expected[3, 1:3] = 7  # an item's count with everything of users, its square with their counts
    expected[4, 3] = expected[5, 4] = 8  # the same embedding on either side
    np.testing.assert_array_equal(design.weight_groups, expected)


def structure(dense):
    return Design.of(mask_of(dense)).structure


def test_tastes_in_the_mask_show_and_a_mask_of_counts_alone_shows_none():
    """The same counts as odds, with groups of people who rate their own and without."""
    rng = np.random.default_rng(5)
    active, popular = rng.gamma(1.0, size=(300, 1)), rng.gamma(1.0, size=200)
    by_counts = (rng.random((300, 200)) < np.minimum(0.1 * active * popular, 0.9)).astype(int)
    assert structure(communities(m=300, n=200, groups=4, inside=0.3, outside=0.05)) == 1.0
    assert structure(by_counts) < 0.3


LARGE = 5_000, 3_000


def test_structure_is_read_off_the_third_singular_value_and_the_last():
    s = np.array([1.0, 0.5, 0.36, 0.32, 0.31, 0.31, 0.3, 0.3, 0.3])
    assert mask_structure(s, LARGE) == 1.0
    s[2] = 0.3 * np.sqrt(1.25)
    assert mask_structure(s, LARGE) == pytest.approx(0.5)
    s[1] = 0.99
    assert mask_structure(s, LARGE) == pytest.approx(0.5), "what is left of popularity does not count"
    assert mask_structure(s, (100, 80)) == 0.0, "so much is chance on a small mask"
    assert mask_structure(s[:5], LARGE) == 0.0, "too small to tell"


@pytest.mark.parametrize("shape", [(60, 45), (100, 100), (300, 100), (1000, 150), (400, 400)])
@pytest.mark.parametrize("counts", ["alike", "skewed"])
def test_chance_alone_is_no_structure_on_a_mask_of_any_size(shape, counts):
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        chance = np.outer(*(rng.lognormal(0, 1, one) for one in shape)) if counts == "skewed" else np.ones(shape)
        dense = rng.random(shape) < np.minimum(chance / chance.mean() * 0.12, 0.95)
        found.append(embed(mask_of(dense.astype(int)), RANK).structure)
    assert max(found) == 0


def test_where_no_embedding_stands_out_the_first_two_are_features():
    shown = Design.of(mask_of(communities(m=300, n=200, groups=4, inside=0.3, outside=0.05)))
    dense = (np.random.default_rng(0).random((300, 200)) < 0.1).astype(int)
    hidden, whole = Design.of(mask_of(dense)), mask_embeddings(MemoryTable(mask_of(dense)), RANK)
    assert (shown.embedding, hidden.embedding) == (RANK, 2)
    assert (hidden.x.shape[1], hidden.z.shape[1]) == (5, 6)
    first = standardise(whole.users[:, :2], hidden.user_counts)
    np.testing.assert_allclose(hidden.x[hidden.user_counts > 0, -2:], first[hidden.user_counts > 0])


def test_features_of_one_rating_more_are_those_of_rows_that_have_as_many():
    counts = np.array([1.0, 2.0, 4.0, 0.0, 1.0])
    own = np.array([-1.0, 0.0, 2.0, -1.0, -1.0])
    features = np.column_stack([np.ones(5), own, own**2, np.arange(5.0), np.arange(5.0) ** 2])
    more = with_one_more(features, counts)
    assert more[:, 1].tolist() == [0.0, 1.0, 2.0, -1.0, 0.0]  # 1 to 2, 2 to 3 (between 2 and 4); most and none stay
    assert more[:, 2].tolist() == [0.0, 2.0, 4.0, 1.0, 0.0]
    assert (more[:, [0, 3, 4]] == features[:, [0, 3, 4]]).all()


def test_places_have_a_weight_of_their_own_and_go_with_no_feature_of_users():
    design = Design.of(mask_of(communities(5)))
    expected = np.insert(Design.of(mask_of(communities(5)), places=0).weight_groups, [1] * PLACES, 6, axis=0)
    expected[1 : 1 + PLACES, 0] = 1
    np.testing.assert_array_equal(design.weight_groups, expected)
    assert COEFFICIENT[6] < 1e-3 * COEFFICIENT[5]


def test_one_rating_more_moves_columns_of_counts_and_no_place():
    design = Design.of(mask_of(communities(5)))
    x, z = design.with_one_more
    for more, features, columns in ((x, design.x, [1, 2]), (z, design.z, [2 + PLACES, 3 + PLACES])):
        assert (more != features).any(axis=0).nonzero()[0].tolist() == columns
