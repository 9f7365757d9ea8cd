"""Lists for everybody: the rows of `recommend`, bit for bit, however the work is cut up; whole or not at all."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from dpsr import DPSR
from dpsr.data import realistic
from dpsr.errors import ParameterError, ReleaseError
from dpsr.release import Release
from dpsr.release.lists import batch as candidates
from dpsr.release.lists import batch as everyone
from dpsr.release.lists.batch import Candidates, Rows, all_lists
from dpsr.release.lists.ranking import ordered_dots, score_pairs
from dpsr.types import Affinity, Mask, Model, Scale


@pytest.fixture(scope="module", params=["default", "paper"])
def release(request):
    ratings = realistic(0, n_users=90, n_items=300, n_ratings=2_500)
    build = DPSR if request.param == "default" else DPSR.paper
    return build(epsilon=1.0).fit(ratings).release


def made_up(user_factors, item_factors, *, rated=None, affinity=None, overall=0.0):
    """A model of given factors; user u rated the items `rated[u]`."""
    m, n = len(user_factors), len(item_factors)
    rated = rated or [[] for _ in range(m)]
    indptr = np.concatenate([[0], np.cumsum([len(items) for items in rated])]).astype(np.int64)
    items = np.array([item for items in rated for item in items], dtype=np.int32)
    mask = Mask(pa.array([f"u{u:03}" for u in range(m)]), pa.array(np.arange(n) * 10), indptr, items)
    d = user_factors.shape[1]
    return Model(mask, Scale(1, 5), user_factors, item_factors, np.zeros(m), np.zeros(n), overall, 0.5, np.zeros(d),
                 np.eye(d), affinity=affinity)  # fmt: skip


def listed(model, n=10, **settings):
    """{user code: (item codes, scores)} from all blocks."""
    found = {}
    for lists in all_lists(model, n, **settings):
        for user in np.unique(lists.users):
            mine = lists.users == user
            assert lists.ranks[mine].tolist() == list(range(1, mine.sum() + 1))
            found[int(user)] = lists.items[mine].tolist(), lists.scores[mine].tolist()
    return found


def oracle(model, n=10):
    """Score every cell one at a time in plain Python floats, and sort."""
    from scipy.special import ndtr

    def dot(a, b):
        total = 0.0
        for x, y in zip(a.tolist(), b.tolist(), strict=True):
            total += x * y
        return total

    found = {}
    for u in range(model.mask.n_users):
        rated = set(model.mask.items[model.mask.indptr[u] : model.mask.indptr[u + 1]].tolist())
        rows = []
        for j in sorted(set(range(model.mask.n_items)) - rated):
            predicted = score = dot(model.user_factors[u], model.item_factors[j])
            if model.affinity is not None:
                meets = max(dot(model.affinity.users[u], model.affinity.items[j]), 1e-6)
                score = meets * float(ndtr((predicted - model.overall) / np.sqrt(model.residual_variance)))
            rows.append((-score, j, predicted))
        best = sorted(rows)[:n]
        found[u] = [j for _, j, _ in best], [float(np.clip(p, 1, 5)) for _, _, p in best]
    return found


def test_every_user_gets_exactly_the_list_recommend_gives(release):
    lists = listed(release.model, 7)
    assert len(lists) == release.mask.n_users
    for code, user in enumerate(release.mask.user_ids.to_pylist()):
        alone = release.recommend(user, n=7)
        assert release.ids.items(lists[code][0]) == alone.items
        assert lists[code][1] == alone.scores.tolist()


def test_the_lists_are_those_of_a_plain_loop_over_all_cells(release):
    assert listed(release.model, 5) == oracle(release.model, 5)


@pytest.mark.parametrize(("block", "threads"), [(1, 1), (7, 3), (512, 2), (10_000, 1)])
def test_block_size_and_threads_do_not_change_a_bit(release, block, threads):
    assert listed(release.model, 6, block=block, threads=threads) == listed(release.model, 6)


def test_tiles_of_items_do_not_change_a_bit(release, monkeypatch):
    whole = listed(release.model, 6)
    monkeypatch.setattr(candidates, "TILE", 17)
    assert listed(release.model, 6) == whole


def nearly_equal(rng, m=40, n=600):
    """Scores of about 50 that differ by 1e-9: single precision cannot tell them apart."""
    return np.full((m, 3), 5.0), np.column_stack([np.full((n, 2), 5.0), rng.permutation(n) * 1e-9])


def test_items_closer_than_single_precision_are_put_in_their_true_order():
    users, items = nearly_equal(np.random.default_rng(0))
    model = made_up(users, items)
    lists = listed(model, 10)
    best = np.argsort(-items[:, 2], kind="stable")[:10].tolist()
    assert all(found[0] == best for found in lists.values())


def test_without_the_error_bound_the_same_items_come_in_the_wrong_order(monkeypatch):
    """The bound is what makes the test above pass: with the error planted at zero, true winners are lost."""
    rng = np.random.default_rng(0)
    items = rng.random(60) / 30 + 1e-8 * rng.standard_normal((600, 60))  # scores near 1 that differ by some 1e-8
    model = made_up(0.5 + rng.random((40, 60)), items)
    right = oracle(model, 10)
    assert listed(model, 10) == right
    monkeypatch.setattr(Rows, "of", classmethod(lambda cls, rows: cls(rows.astype(np.float32), np.zeros(len(rows)))))
    assert listed(model, 10) != right


def test_single_precision_products_lie_within_the_stated_bound_of_exact_ones():
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((30, 50)) * 10.0 ** rng.integers(-3, 4, (30, 1)), rng.standard_normal((70, 50)) * 100
    left, right = Rows.of(a), Rows.of(b)
    exact = ordered_dots(a, np.arange(30)[:, None], b, np.arange(70))
    error = np.abs(left.single.astype(np.float64) @ right.single.T.astype(np.float64) - exact)
    error = np.maximum(error, np.abs(left.single @ right.single.T - exact))
    bound = np.outer(left.error_factor, right.error_factor)
    assert (error <= bound).all()
    assert error.max() > bound.max() * 1e-4, "a bound thousands of times too wide would make everything a candidate"


def test_equal_items_tie_and_the_lower_one_comes_first():
    rng = np.random.default_rng(2)
    items = np.repeat(rng.standard_normal((4, 5)), 50, axis=0)  # four kinds of item, fifty of each
    model = made_up(rng.standard_normal((9, 5)), items, rated=[[0, 3]] * 9)
    lists = listed(model, 8)
    assert lists == oracle(model, 8)
    assert all(found[0] == sorted(found[0]) for found in lists.values())


def test_more_equal_items_than_there_is_room_for_are_still_ranked_exactly():
    model = made_up(np.ones((3, 2)), np.ones((500, 2)), rated=[[0, 1], [], [499]])
    assert (Candidates(model, 2).of_block(0, 3).counts == -1).all()
    assert {user: items for user, (items, _) in listed(model, 2).items()} == {0: [2, 3], 1: [0, 1], 2: [0, 1]}


def test_likely_and_liked_are_weighed_together_as_recommend_does():
    rng = np.random.default_rng(3)
    affinity = Affinity(rng.random((20, 4)), rng.random((400, 4)) ** 9 * 10.0 ** -rng.integers(0, 9, (400, 1)))
    model = made_up(rng.standard_normal((20, 6)), rng.standard_normal((400, 6)), affinity=affinity, overall=0.4)
    assert listed(model, 10) == oracle(model, 10)


def test_hopeless_items_whose_scores_vanish_are_ranked_too():
    affinity = Affinity(np.ones((2, 1)), np.full((30, 1), 1e-9))
    model = made_up(np.full((2, 1), -30.0), np.arange(30.0)[:, None], affinity=affinity)
    assert listed(model, 30) == oracle(model, 30)


def test_numbers_beyond_single_precision_are_ranked_in_double():
    rng = np.random.default_rng(4)
    model = made_up(rng.standard_normal((5, 3)) * 1e200, rng.standard_normal((40, 3)))
    assert listed(model, 5) == oracle(model, 5)


def test_somebody_who_rated_nearly_everything_gets_what_is_left():
    rng = np.random.default_rng(5)
    model = made_up(rng.random((3, 2)), rng.random((12, 2)), rated=[list(range(12)), list(range(11)), []])
    lists = listed(model, 10)
    assert 0 not in lists
    assert lists[1][0] == [11]
    assert len(lists[2][0]) == 10
    assert len(listed(model, 99)[2][0]) == 12


def test_the_file_holds_every_list_with_ids_and_ranks(release, tmp_path):
    path = release.recommend_all(tmp_path / "recs.parquet", n=4)
    table = pq.read_table(path)
    assert table.column_names == ["user", "rank", "item", "score"]
    first = release.recommend(table["user"][0].as_py(), n=4)
    assert table["item"].to_pylist()[:4] == first.items
    assert table["score"].to_pylist()[:4] == first.scores.tolist()
    assert table["rank"].to_pylist() == [1, 2, 3, 4] * release.mask.n_users


def test_csv_is_written_for_people(release, tmp_path):
    release.recommend_all(tmp_path / "recs.csv", n=2)
    table = pacsv.read_csv(tmp_path / "recs.csv")
    assert table.num_rows == 2 * release.mask.n_users
    assert table["item"].to_pylist()[:2] == release.recommend(table["user"][0].as_py(), n=2).items


def test_progress_counts_users_and_ends_with_all_of_them(release, tmp_path):
    heard = []
    release.recommend_all(tmp_path / "r.parquet", 1, progress=lambda done, total: heard.append((done, total)))
    assert heard[-1] == (release.mask.n_users, release.mask.n_users)


def test_an_existing_file_is_kept_unless_overwriting_is_allowed(release, tmp_path):
    path = tmp_path / "recs.parquet"
    path.write_text("mine")
    with pytest.raises(ReleaseError, match=r"exists already.*--force"):
        release.recommend_all(path)
    assert path.read_text() == "mine"
    release.recommend_all(path, overwrite=True)
    assert pq.read_table(path).num_rows == 10 * release.mask.n_users


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_failing_disk_leaves_nothing_behind(release, tmp_path, monkeypatch, broken):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, broken, full)
    with pytest.raises(ReleaseError, match="No space left on device"):
        release.recommend_all(tmp_path / "recs.parquet")
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_leaves_nothing_behind(release, tmp_path):
    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release.recommend_all(tmp_path / "recs.parquet", progress=stop)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "word"), [("recs.txt", "extension"), ("folder.csv", "is a folder"), ("file.csv/x.csv", "could not be")]
)
def test_places_that_cannot_be_written_are_refused(release, tmp_path, name, word):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file.csv").write_text("")
    with pytest.raises(ReleaseError, match=word):
        release.recommend_all(tmp_path / name)


def test_no_items_are_not_asked_for(release, tmp_path):
    with pytest.raises(ParameterError, match="at least 1"):
        release.recommend_all(tmp_path / "recs.parquet", n=0)
    assert list(tmp_path.iterdir()) == []


def test_only_as_many_blocks_as_threads_are_under_way(monkeypatch):
    """Memory is bounded: a slow reader holds the workers back."""
    started = []
    real = everyone._lists_of
    monkeypatch.setattr(everyone, "_lists_of", lambda *a: (started.append(a[1]), real(*a))[1])
    model = made_up(np.ones((50, 1)), np.arange(4.0)[:, None])
    lists = all_lists(model, 1, block=1, threads=2)
    next(lists)
    assert len(started) <= 3
    lists.close()


def test_exact_scores_do_not_depend_on_company():
    rng = np.random.default_rng(6)
    model = made_up(rng.standard_normal((4, 33)), rng.standard_normal((50, 33)))
    together = score_pairs(model, np.arange(4)[:, None], np.arange(50)).scores
    for u in range(4):
        for j in range(50):
            assert score_pairs(model, np.array([u]), np.array([j])).scores[0] == together[u, j]


def test_a_release_of_made_up_factors_recommends_the_same_way():
    rng = np.random.default_rng(7)
    model = made_up(rng.standard_normal((6, 4)), rng.standard_normal((40, 4)))
    release = Release(model, np.empty(0), None, "made up")
    assert {u: release.ids.items(items) for u, (items, _) in listed(model, 3).items()} == {
        u: release.recommend(f"u{u:03}", 3).items for u in range(6)
    }
