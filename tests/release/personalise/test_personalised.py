"""What people get from their own ratings: for them alone, whatever the block, never into a folder."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsr import DPSR, Ratings, Scale, load_release
from dpsr.errors import ParameterError, ReleaseError, ScaleError
from dpsr.release import Contents
from dpsr.release.personalise.value_level import ValueLevel


def rmse(predicted, truth):
    return float(np.sqrt(np.mean((predicted - truth) ** 2)))


def cells(ratings):
    table = ratings.to_arrow()
    return table["user"].to_numpy(), table["item"].to_numpy()


def with_rows(ratings, user, items, values):
    """The same ratings with other rows for one person."""
    table = ratings.to_arrow()
    users, others, found = (table[name].to_numpy() for name in ("user", "item", "rating"))
    keep = users != user
    return Ratings.from_arrays(
        np.r_[users[keep], np.full(len(items), user)], np.r_[others[keep], items], np.r_[found[keep], values],
        scale=ratings.scale,
    )  # fmt: skip


def upside_down(ratings, but):
    """Everybody's ratings turned over, one person's left alone."""
    users, items = cells(ratings)
    values = np.where(users == but, ratings.values, ratings.scale.low + ratings.scale.high - ratings.values)
    return Ratings.from_arrays(users, items, values, scale=ratings.scale)


def answers(personal, user, items):
    lists = personal.table(5)
    own = lists.filter(pa.compute.equal(lists["user"], user))
    return own.to_pydict(), personal.predict([user], items).tolist(), personal.recommend(user, 5).items


def moved_by_others(release, ratings, user):
    """Whether anything that one person gets changes when everybody else's raw rows do."""
    items = release.mask.item_ids.to_numpy()[:50]
    before = answers(release.personalise(ratings), user, items)
    others = upside_down(ratings, user)
    gone = with_rows(others, int(cells(ratings)[0][-1]), [int(items[0])], [ratings.scale.low])
    return any(before != answers(release.personalise(changed), user, items) for changed in (others, gone))


def test_nobodys_rows_move_what_another_person_gets_not_by_a_bit(either):
    user = int(cells(either.train)[0][0])
    assert not moved_by_others(either.release, either.train, user)


def test_a_leak_between_people_would_be_seen(with_readings, monkeypatch):
    """Planted: the average of the block's raw ratings enters everybody's vector."""
    honest = ValueLevel._own_coefficients

    def leaky(self, own, side, choice):
        theta = honest(self, own, side, choice)
        theta[:, 0] += 1e-6 * own.values.mean()
        return theta

    monkeypatch.setattr(ValueLevel, "_own_coefficients", leaky)
    assert moved_by_others(with_readings.release, with_readings.train, int(cells(with_readings.train)[0][0]))


def test_own_rows_do_move_what_a_person_gets(either):
    user = int(cells(either.train)[0][0])
    items = either.release.mask.item_ids.to_numpy()[:50]
    before = either.release.personalise(either.train).predict([user], items)
    own = cells(either.train)[1][cells(either.train)[0] == user]
    changed = with_rows(either.train, user, own, np.full(len(own), either.train.scale.low))
    after = either.release.personalise(changed).predict([user], items)
    assert after.mean() < before.mean()


def test_it_is_more_accurate_than_the_release_and_inside_the_scale(either):
    where = cells(either.test)
    personal = either.release.personalise(either.train).predict(*where)
    assert rmse(personal, either.test.values) < rmse(either.release.predict(*where), either.test.values)
    assert either.train.scale.low <= personal.min() <= personal.max() <= either.train.scale.high


@pytest.fixture(scope="module")
def in_usual_blocks(with_readings):
    """Predictions and lists, in blocks as they are cut without a wish."""
    personal = with_readings.release.personalise(with_readings.train)
    return personal.predict(*cells(with_readings.test)), personal.table(5)


@pytest.mark.parametrize("block", [1, 7, 100_000])
def test_lists_and_predictions_are_the_same_bits_whatever_the_block(with_readings, in_usual_blocks, block):
    predicted, lists = in_usual_blocks
    personal = with_readings.release.personalise(with_readings.train, block=block)
    np.testing.assert_array_equal(personal.predict(*cells(with_readings.test)), predicted)
    assert personal.table(5).equals(lists)


def test_one_persons_list_is_the_one_in_the_table_and_leaves_out_what_they_rated(either):
    personal = either.release.personalise(either.train)
    lists = personal.table(6)
    users, items = cells(either.train)
    for user in np.unique(users)[::97].tolist():
        one = personal.recommend(user, 6)
        rows = lists.filter(pa.compute.equal(lists["user"], user))
        assert rows["item"].to_pylist() == one.items
        assert rows["score"].to_pylist() == one.scores.tolist()
        assert not set(one.items) & set(items[users == user].tolist())
        np.testing.assert_array_equal(one.scores, personal.predict([user], one.items))


def test_rated_items_may_be_asked_for(with_readings):
    personal = with_readings.release.personalise(with_readings.train)
    user = int(cells(with_readings.train)[0][0])
    everything = personal.recommend(user, with_readings.release.mask.n_items, exclude_rated=False)
    assert len(everything.items) == with_readings.release.mask.n_items


def test_a_loaded_release_gives_the_same_bits_as_the_fitted_one(either, tmp_path):
    where = cells(either.test)
    loaded = load_release(either.release.save(tmp_path / "release"))
    one, other = (release.personalise(either.train) for release in (either.release, loaded))
    np.testing.assert_array_equal(one.predict(*where), other.predict(*where))
    assert one.table(3).equals(other.table(3))


def test_the_estimator_personalises_what_it_fitted(sums_only):
    model = DPSR(0.2, random_state=1).fit(sums_only.train)
    where = cells(sums_only.test)
    expected = sums_only.release.personalise(sums_only.train).predict(*where)
    np.testing.assert_array_equal(model.personalise(sums_only.train).predict(*where), expected)


@pytest.mark.parametrize("case", ["one rating", "all equal", "every item"])
def test_extremal_people_get_finite_answers_inside_the_scale(either, case):
    scale, items = either.train.scale, either.release.mask.item_ids.to_numpy()
    user = int(cells(either.train)[0][0])
    rows = {
        "one rating": (items[:1], [scale.high]),
        "all equal": (items[:60], np.full(60, scale.high)),
        "every item": (items, np.random.default_rng(0).choice(scale.values, len(items))),
    }
    personal = either.release.personalise(with_rows(either.train, user, *rows[case]))
    predicted = personal.predict([user], items)
    assert np.isfinite(predicted).all()
    assert scale.low <= predicted.min() <= predicted.max() <= scale.high
    if case == "all equal":
        assert predicted.mean() > either.release.predict([user], items).mean()
    if case == "every item":
        assert personal.recommend(user).items == []


def test_one_person_with_forty_per_cent_of_all_rows_changes_nothing_for_the_others(sums_only):
    users, items = cells(sums_only.train)
    ids = np.unique(items)
    heavy = with_rows(sums_only.train, int(users[0]), ids, np.full(len(ids), sums_only.train.scale.low))
    few = np.isin(cells(heavy)[0], [users[0], *np.unique(users)[1:13]])
    some = Ratings.from_arrays(*(column[few] for column in (*cells(heavy), heavy.values)), scale=heavy.scale)
    assert np.mean(cells(some)[0] == users[0]) > 0.4
    other = int(np.unique(users)[5])
    before, after = (sums_only.release.personalise(rows).predict([other], ids) for rows in (sums_only.train, some))
    np.testing.assert_array_equal(before, after)


def test_who_brings_no_ratings_gets_what_the_release_says(either):
    users, items = cells(either.train)
    ids = np.unique(items)
    without = with_rows(either.train, int(users[0]), [], [])
    personal = either.release.personalise(without)
    np.testing.assert_array_equal(personal.predict([users[0]], ids), either.release.predict([users[0]], ids))
    assert personal.recommend(int(users[0])).items == either.release.recommend(int(users[0])).items


def test_somebody_the_release_does_not_know_is_folded_in_and_said(either):
    _, items = cells(either.train)
    ids, own = np.unique(items), np.unique(items)[:12]
    values = np.full(12, either.train.scale.high)
    personal = either.release.personalise(with_rows(either.train, 999_999, own, values))
    expected = either.release.fold_in_user(own, values)
    np.testing.assert_allclose(personal.predict([999_999], ids), expected.predict(ids), rtol=1e-12)
    assert personal.recommend(999_999, 5).items == expected.recommend(5).items
    assert "1 people are not in the release" in personal.notes[0]


def test_unknown_items_are_counted_dropped_and_said(either):
    users, items = cells(either.train)
    own = items[users == users[0]]
    values = either.train.values[users == users[0]]
    more = with_rows(either.train, int(users[0]), np.r_[own, 10**9, 10**9 + 1], np.r_[values, 3, 4])
    personal = either.release.personalise(more)
    assert personal.notes == ("2 ratings are of items that the release does not know: they were left out.",)
    ids = np.unique(items)
    expected = either.release.personalise(either.train)
    np.testing.assert_array_equal(personal.predict([users[0]], ids), expected.predict([users[0]], ids))
    mean = personal.predict([users[0]], [10**9])
    assert personal.predict([users[0]], ids).min() <= mean[0] <= personal.predict([users[0]], ids).max()


def test_ratings_on_another_scale_are_refused(sums_only):
    users, items = cells(sums_only.train)
    other = Ratings.from_arrays(users, items, sums_only.train.values, scale=Scale(1, 10))
    with pytest.raises(ScaleError, match="must be on the scale of the release, 1:5:1, found ratings on 1:10:1"):
        sums_only.release.personalise(other)


def test_the_papers_release_is_refused_with_what_to_do(sums_only):
    paper = DPSR.paper(1.0, random_state=0).fit(sums_only.train)
    with pytest.raises(ParameterError, match="default method, or use fold_in"):
        paper.personalise(sums_only.train)


def test_a_block_of_nobody_is_refused(sums_only):
    with pytest.raises(ParameterError, match="at least one person, found 0"):
        sums_only.release.personalise(sums_only.train, block=0)


def test_files_say_for_whom_they_are_and_not_private_stays_marked(sums_only, tmp_path):
    path = sums_only.release.personalise(sums_only.train).save(tmp_path / "lists.parquet", 3)
    notes = pq.read_schema(path).metadata
    assert notes[b"dpsr.for"] == b"Each list may be shown to its own person, and to nobody else."
    assert notes[b"dpsr.promise"] == b"NOT PRIVATE"
    assert pq.read_table(path).equals(sums_only.release.personalise(sums_only.train).table(3))
    with pytest.raises(ReleaseError, match="exists already"):
        sums_only.release.personalise(sums_only.train).save(path)


def test_a_private_release_states_joint_differential_privacy_with_its_epsilon(sums_only, tmp_path):
    personal = DPSR(0.2).fit(sums_only.train).personalise(sums_only.train)
    assert "joint differential privacy at epsilon = 0.2" in personal.statement
    assert "shown to its own person, and to nobody else" in personal.statement
    notes = personal.table(1).schema.metadata
    assert notes[b"dpsr.promise"] == b"joint differential privacy"
    assert "0.2" in repr(personal)


def test_text_that_cannot_say_for_whom_it_is_is_not_written(sums_only, tmp_path):
    with pytest.raises(ReleaseError, match=r"written as \.parquet"):
        sums_only.release.personalise(sums_only.train).save(tmp_path / "lists.csv")
    assert not list(tmp_path.iterdir())


def test_nothing_made_from_own_ratings_enters_a_release_folder(sums_only):
    release, model = sums_only.release, sums_only.release.personalise(sums_only.train).model()
    ours = release.contents
    with pytest.raises(ReleaseError, match="never into a release folder"):
        Contents(model, ours.table, ours.certificate, ours.method, ours.settings, ours.ratings)
