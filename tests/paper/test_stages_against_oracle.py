"""Stages 2 and 3 against the word-for-word dense algorithm, to 1e-6 in every cell.

A rank-d cut is discontinuous where sigma_d = sigma_{d+1}: there LAPACK and an iteration may pick different, equally
good matrices. The comparison holds where the dense run's smallest relative gap is above GAP; that is asserted of the
chosen matrices and assumed of the random ones.
"""

from typing import Any

import numpy as np
import pytest
from dense_oracle import Oracle
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from paper_stages import blended, completed, neighbours
from private_by_hand import make_private

from dpsr.types import Model

GAP = 1e-6
PAPER = {"K": 15, "beta": 0.65, "d": 8, "lam": 0.7, "n_iter": 50, "T": 10}


def reconstruct(noisy: np.ndarray, mask: np.ndarray, **letters: Any) -> Model:
    p = PAPER | letters
    ratings = make_private(noisy, mask)
    smoothed = blended(ratings, neighbours(ratings, k=p["K"]), beta=p["beta"])
    return completed(smoothed, rank=p["d"], lam=p["lam"], n_iter=p["n_iter"], period=p["T"])


def every_cell(model: Model) -> np.ndarray:
    u, j = np.indices(model.mask.shape)
    return model.predict(u.ravel(), j.ravel()).reshape(model.mask.shape)


def low_rank_ratings(seed: int, m: int, n: int, density: float, *, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """The paper's generator with Laplace noise, clipped to 1..5."""
    rng = np.random.default_rng(seed)
    R = rng.normal(size=(m, 8)) @ rng.normal(size=(n, 8)).T + rng.normal(0, 0.1, (m, n))
    R = 1 + 4 * (R - R.min()) / (R.max() - R.min())
    return np.clip(R + rng.laplace(0, noise, (m, n)), 1, 5), rng.random((m, n)) < density


def assert_agree(noisy: np.ndarray, mask: np.ndarray, **letters: Any) -> None:
    oracle = Oracle(noisy, mask, **(PAPER | letters))
    expected = oracle.run()
    assert min(oracle.gaps, default=1.0) > GAP, "the matrix does not define its own projection; choose another seed"
    np.testing.assert_allclose(every_cell(reconstruct(noisy, mask, **letters)), expected, rtol=0, atol=1e-6)


@pytest.fixture(scope="module")
def paper_size() -> tuple[np.ndarray, np.ndarray]:
    return low_rank_ratings(0, 300, 200, 0.1, noise=4.0)


@pytest.fixture(scope="module")
def small() -> tuple[np.ndarray, np.ndarray]:
    return low_rank_ratings(1, 90, 70, 0.2)


def test_paper_size(paper_size: tuple[np.ndarray, np.ndarray]) -> None:
    assert_agree(*paper_size)


@pytest.mark.parametrize(
    ("shape", "density"),
    [((30, 260), 0.15), ((60, 300), 0.1), ((260, 30), 0.15), ((400, 60), 0.1), ((150, 120), 0.015), ((1, 40), 0.5)],
    ids=["wide", "wider-than-the-basis", "tall", "taller-than-the-basis", "very-sparse", "one-user"],
)
def test_shapes(shape: tuple[int, int], density: float) -> None:
    assert_agree(*low_rank_ratings(2, *shape, density))


@pytest.mark.parametrize(
    "letters",
    [
        {"n_iter": 53},
        {"n_iter": 7},
        {"n_iter": 0},
        {"T": 1, "n_iter": 12},
        {"T": 7},
        {"K": 1},
        {"K": 500},
        {"beta": 0.0},
        {"beta": 1.0},
        {"lam": 0.0},
        {"lam": 1.0},
        {"lam": 1.0, "n_iter": 13},
        {"d": 1},
        {"d": 20},
        {"d": 70},
        {"d": 100},
    ],
    ids=str,
)
def test_every_letter_at_its_edges(small: tuple[np.ndarray, np.ndarray], letters: dict[str, Any]) -> None:
    assert_agree(*small, **letters)


@pytest.mark.parametrize("seed", range(6))
def test_ties_everywhere(seed: int) -> None:
    """Two rating values, a third of the columns copies of others: most similarities tie with another or are zero."""
    rng = np.random.default_rng(seed)
    noisy = rng.choice([1.0, 4.0], size=(60, 90))
    mask = rng.random((60, 90)) < 0.12
    copied = rng.integers(0, 60, 30)
    noisy[:, 60:], mask[:, 60:] = noisy[:, copied], mask[:, copied]
    assert_agree(noisy, mask, K=4, d=6)


def test_items_nobody_else_rated_and_constant_and_empty_ones(small: tuple[np.ndarray, np.ndarray]) -> None:
    noisy, mask = small[0].copy(), small[1].copy()
    mask[:, :3] = False  # nobody
    mask[:, 3:6] = False
    mask[[5, 6, 7], [3, 4, 5]] = True  # one rater each
    mask[8] = False
    mask[:, 6] = False
    mask[8, 6] = True  # a user and an item that only know each other
    noisy[:, 7:10] = [0.1 + 0.2 + 2, 3.3, 5.0]  # constant columns, one of them not a round number
    mask[20:22] = False  # users without ratings
    assert_agree(noisy, mask)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(data=st.data())
def test_random_masks(data: st.DataObject) -> None:
    m, n = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 12))
    mask = data.draw(hnp.arrays(bool, (m, n)))
    noisy = data.draw(hnp.arrays(float, (m, n), elements=st.sampled_from([1.0, 1.7, 2.0, 3.0, 4.1, 5.0])))
    letters = {
        "K": data.draw(st.integers(1, 14)),
        "beta": data.draw(st.sampled_from([0.0, 0.3, 0.65, 1.0])),
        "d": data.draw(st.integers(1, 13)),
        "lam": data.draw(st.sampled_from([0.0, 0.7, 1.0])),
        "n_iter": data.draw(st.integers(0, 9)),
        "T": data.draw(st.integers(1, 5)),
    }
    assume(mask.any())
    oracle = Oracle(noisy, mask, **letters)
    expected = oracle.run()
    assume(min(oracle.gaps, default=1.0) > GAP)
    np.testing.assert_allclose(every_cell(reconstruct(noisy, mask, **letters)), expected, rtol=0, atol=1e-6)


def test_every_hyper_parameter_changes_the_result(small: tuple[np.ndarray, np.ndarray]) -> None:
    base = every_cell(reconstruct(*small))
    changes = [("K", 5), ("beta", 0.5), ("d", 5), ("lam", 0.9), ("n_iter", 40), ("T", 25)]
    for letter, value in changes:
        moved = np.abs(every_cell(reconstruct(*small, **{letter: value})) - base).max()
        assert moved > 1e-4, f"{letter} does nothing"


def test_a_planted_error_of_five_percent_would_be_caught(small: tuple[np.ndarray, np.ndarray]) -> None:
    expected = Oracle(*small).run()
    for letter, value in [("beta", 0.65 * 1.05), ("lam", 0.7 * 1.05)]:
        assert np.abs(every_cell(reconstruct(*small, **{letter: value})) - expected).max() > 1e-5
