"""What the plots count: against plain loops, at the edges too."""

from collections import Counter
from math import floor, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsr import Scale
from dpsr.engine.table import block_edges
from dpsr.report.card import sample_users, samples
from dpsr.report.page import MAX_SHOWN, display_name
from dpsr.report.plots import (
    BASE,
    MARGIN,
    TOP,
    Bin,
    bar_plot,
    doubling_bins,
    doubling_labels,
    rating_bins,
    scale_labels,
    summarise_ratings,
)


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=60))
def test_doubling_bins_count_as_a_loop_does(counts):
    expected = Counter(0 if n == 0 else 2 ** floor(log2(n)) for n in counts)
    found = {b.low: b.count for b in doubling_bins(np.array(counts)) if b.count}
    assert found == dict(expected)
    for b in doubling_bins(np.array(counts)):
        assert b.count == sum(b.low <= n <= b.high for n in counts)


@pytest.mark.parametrize("scale", [Scale(1, 5), Scale(0.5, 5, 0.5), Scale(0, 1), Scale(-10, 10, 0.25), Scale(1, 43)])
def test_rating_bins_hold_every_rating_once_and_the_ends_too(scale):
    ratings = np.concatenate([scale.values, [scale.low, scale.high], np.linspace(scale.low, scale.high, 77)])
    bins = rating_bins(ratings, scale)
    assert sum(b.count for b in bins) == len(ratings)
    assert (bins[0].low, bins[-1].high) == (scale.low, scale.high)
    assert len(bins) <= 40


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=40))
def test_bars_stay_inside_the_plot_and_keep_their_proportions(counts):
    bins = [Bin(k, k, n) for k, n in enumerate(counts)]
    plot = bar_plot(bins, [""] * len(bins), doubling_labels(bins))
    for bar, n in zip(plot.bars, counts, strict=True):
        assert bar.x >= MARGIN
        assert bar.x + bar.width <= 100 + 1e-9
        assert TOP - 1e-9 <= bar.y <= BASE
        assert (bar.height > 0) == (n > 0)
    tallest = max(counts)
    if tallest:
        for bar, n in zip(plot.bars, counts, strict=True):
            assert bar.height == pytest.approx(n / tallest * max(b.height for b in plot.bars), abs=1.6)
    assert len(plot.x_ticks) <= 9
    assert len(plot.y_ticks) <= 5


def test_scale_labels_stand_at_their_levels():
    bins = rating_bins(np.array([3.0]), Scale(1, 5))
    assert [(tick.at / len(bins), tick.text) for tick in scale_labels(bins, 5)] == [
        (0, "1"), (0.25, "2"), (0.5, "3"), (0.75, "4"), (1, "5"),
    ]  # fmt: skip


def test_sample_users_are_chosen_by_public_counts_alone(release):
    counts = release.mask.user_counts
    users = sample_users(release.mask.census)
    chosen = samples(release.contents, users, summarise_ratings(release.contents, list(users)).rated)
    assert [sample.n_ratings for sample in chosen] == sorted(sample.n_ratings for sample in chosen)
    assert np.quantile(counts, 0.5, method="lower") in [sample.n_ratings for sample in chosen]
    for sample in chosen:
        best = release.recommend(sample.user.text, 5)
        assert [s.item.text for s in sample.suggestions] == [str(item) for item in best.items]


@pytest.mark.parametrize("size", [1, 70, 10**6])
def test_a_glance_at_blocks_sees_what_the_whole_table_says(release, monkeypatch, size):
    monkeypatch.setattr("dpsr.engine.table.block_edges", lambda counts, *_: block_edges(counts, size))
    mask, ratings = release.mask, release.ratings
    seen = summarise_ratings(release.contents, [0, 3, mask.n_users - 1])
    assert seen.bins == rating_bins(ratings, release.scale)
    assert (seen.mean, seen.deviation) == pytest.approx((ratings.mean(), ratings.std()), rel=1e-12)
    assert seen.rows == list(zip(mask.users[:5].tolist(), mask.items[:5].tolist(), ratings[:5].tolist(), strict=True))
    for user, items in seen.rated.items():
        assert items.tolist() == mask.items[mask.users == user].tolist()
    assert list(seen.rated) == [0, 3, mask.n_users - 1]


@given(st.text(max_size=600))
def test_a_shown_name_is_printable_short_and_marked_when_cut(text):
    name = display_name(text)
    assert name.text
    assert all(c.isprintable() or c == "\u200d" for c in name.text + name.title)
    assert len(name.text) <= MAX_SHOWN
    assert (name.text == text) or name.title or any(not c.isprintable() for c in text) or not text
