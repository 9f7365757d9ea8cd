"""`synthetic.parquet` of likes: people who do not exist, drawn from the release alone and drawn again by `verify`."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from folders import copied, resealed

from dpsr import DPSR, Interactions, load_release
from dpsr.pipeline.publish import publish
from dpsr.release import verify
from dpsr.release.folder.write import writer
from dpsr.synthesis import MEAN_MET, Synthesis, items_met, make_up_likes
from dpsr.types.item_side import SIZES, Crowd
from dpsr.types.likes_side import LikesSide

DELTA = 1e-5
HALF = 20


def two_crowds(n_users=300, seed=0):
    """Each crowd has its own half of the items, popular ones first."""
    rng = np.random.default_rng(seed)
    p = 1 / (3 + np.arange(HALF))
    rows = [
        (u, int(j) + HALF * (u % 2)) for u in range(n_users) for j in rng.choice(HALF, 8, replace=False, p=p / p.sum())
    ]
    return Interactions.from_arrays([u for u, _ in rows], [j for _, j in rows])


@pytest.fixture(scope="module")
def likes():
    return two_crowds()


@pytest.fixture(scope="module")
def folder(likes, tmp_path_factory):
    pipeline = DPSR(30.0, unit="user", delta=DELTA, items=likes.item_ids)
    return publish(likes, pipeline, tmp_path_factory.mktemp("made") / "r").folder


@pytest.fixture(scope="module")
def release(folder):
    return load_release(folder)


def test_the_table_has_people_and_items_none_twice_and_as_many_people_as_noisy_answers_say(release, folder):
    table = pq.read_table(folder / "synthetic.parquet").to_pandas()
    assert list(table.columns) == ["user", "item"]
    assert table.user.nunique() == table.user.max() == release.synthetic.people == round(release.crowd.people)
    assert set(table["item"]) <= set(range(2 * HALF))
    assert not table.duplicated().any()


def test_popularity_and_activity_are_kept(release):
    """The oracle is the release: weighted shares of items among many made-up people are its popularity."""
    table = release.synthesise(4_000).to_pandas()
    n = table.groupby("user")["item"].transform("size")
    weighted = np.bincount(table["item"], 1 / np.sqrt(n), minlength=2 * HALF)
    released = release.side.popularity / release.side.popularity.sum()
    assert np.abs(weighted / weighted.sum() - released).max() < 0.2 * released.max(), "0.10 ± 0.01 under fresh noise"
    each = float(release.crowd.activity @ np.minimum(MEAN_MET, 2 * HALF) / release.crowd.activity.sum())
    assert len(table) / 4_000 == pytest.approx(each, rel=0.1)


def test_what_goes_together_is_kept_and_would_not_be_without_taste(release):
    """Real people have one half of the items only; made-up ones lean to one, and drawn by popularity they do not."""

    def one_sided(side):
        people = make_up_likes(side, Synthesis(3_000))
        n = np.diff(people.indptr)
        low = np.bincount(people.owners, people.cells < HALF, minlength=len(n))
        return np.abs(low / n - 0.5)[n >= 6].mean()

    tasteless = replace(LikesSide.of_popularity(release.side.popularity), crowd=release.crowd)
    assert one_sided(release.side) > 1.3 * one_sided(tasteless)


def test_few_people_without_a_declared_list_are_not_buried_by_people_and_cells_that_noise_invents():
    """Before: thirteen times as many interactions, most of a few people nobody ever saw, and one in a hundred named."""
    rng, shares = np.random.default_rng(0), np.arange(1, 61) ** -0.8
    numbers = rng.integers(2, 25, 400)
    items = np.concatenate([rng.choice(60, n, replace=False, p=shares / shares.sum()) for n in numbers])
    likes = Interactions.from_arrays(np.repeat(np.arange(400), numbers), items)
    release = DPSR(3.0, unit="user", delta=1e-5, random_state=0).fit(likes).release_
    table = release.synthesise(400)
    assert len(table) == pytest.approx(numbers.sum(), rel=0.5)
    named = ~pc.starts_with(table["item"].cast(pa.string()), "cell:").to_numpy()
    known = np.isin(items, release.index.named.to_numpy(zero_copy_only=False).astype(np.int64))
    assert np.mean(named) > 0.4 * np.mean(known)


def test_draws_are_kept_in_proportion_to_their_welcome():
    """An oracle by hand: two items of like propensity, one welcome half as often, one draw each."""
    rng = np.random.default_rng(0)
    _, met = items_met(
        np.ones(40_000, dtype=np.int64), np.ones(2), rng, lambda people, cells: np.where(cells, 0.5, 1.0)
    )
    assert np.mean(met == 1) == pytest.approx(1 / 3, abs=0.01)


def test_the_same_number_and_seed_give_the_same_people(release):
    one = release.synthesise(40, seed=3)
    assert one.equals(release.synthesise(40, seed=3))
    assert not one.equals(release.synthesise(40, seed=4))


def test_people_are_made_up_even_where_nobody_was_seen_doing_anything():
    crowd = Crowd(1.0, np.ones(len(SIZES)) / len(SIZES), np.array([1.0, 0.5, 0.5]), np.ones(len(SIZES)))
    side = LikesSide(*(getattr(LikesSide.of_popularity(crowd.counts), name) for name in _FIELDS), crowd)
    assert np.diff(make_up_likes(side, Synthesis(50)).indptr).min() >= 1


_FIELDS = ("popularity", "frequent", "centre", "entry", "exit", "offset", "ridge", "gram", "method")


def test_verify_draws_them_again_and_finds_a_real_person_among_them(folder, likes, tmp_path):
    """The planted error: one made-up person's rows are a real person's."""
    assert any("people who do not exist" in words for words in verify(folder).holds)
    forged = copied(folder, tmp_path / "f")
    table = pq.read_table(forged / "synthetic.parquet")
    keep = table.filter(pa.array(table["user"].to_numpy() != 5))
    real = likes.mask.items[slice(*likes.mask.indptr[7:9])].astype(np.int64)
    table = pa.concat_tables([keep, pa.table({"user": np.full(len(real), 5), "item": real}, schema=table.schema)])
    with writer(forged / "synthetic.parquet", table.schema) as file:
        file.write_table(table)
    facts = json.loads((forged / "model.json").read_text())
    facts["synthetic"] |= {"ratings": len(table)}
    (forged / "model.json").write_text(json.dumps(facts))
    assert any("who is in it, nobody knows" in words for words in resealed(forged).fails)


def test_none_and_as_many_as_asked_and_the_card_says_what_is_kept(folder, release, tmp_path):
    card = (folder / "card.html").read_text("utf-8")
    for words in ("Kept, as far as it is known", "Not kept", "Weights and times", "interactions of a person"):
        assert words in card
    assert f"{release.synthetic.people:,} made-up people" in card
    release.save(tmp_path / "none", people=0)
    assert not (tmp_path / "none" / "synthetic.parquet").exists()
    assert verify(tmp_path / "none").intact
    release.save(tmp_path / "some", people=25)
    assert pq.read_table(tmp_path / "some" / "synthetic.parquet")["user"].to_numpy().max() == 25
