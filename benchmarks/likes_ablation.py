r"""Would score steps pay for lists? All of the budget for second moments, against a part of it for a score step.

    python -m benchmarks.likes_ablation ../shared/data [--epsilon 1,3,10] [--seeds 2]

A **score step** asks for the loadings of every cell on axes f that are known so far: somebody with the cells x adds, on
each of their cells j, the product of their weight there and their own direction of taste without that cell,

    y_j h_(-j),     y = g x / |g x|,   h_(-j) = f_(-j) / |f_(-j)|,       a matrix of length at most one,

so that the sum over people is g_j p_j (C + K v_j) with C and K the same for all cells. With normal noise of deviation s
that is a linear observation of every v_j, inside the frequent cells and outside, and is put together with the posterior
of the moments (outside: with the prior that the frequent cells have). K and C are taken without noise here, which is
kind to score steps. Noise is drawn in floating point from a seed and people are raw: NOT PRIVATE.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpsr import Interactions
from dpsr.certify.normal_price import affordable_squared_mu
from dpsr.data import realistic
from dpsr.evaluate.likes.contract import Baskets, baskets_of
from dpsr.evaluate.likes.protocol import HeldOutPeople, LikesSplit, score_lists
from dpsr.evaluate.sets import sets_in_folder
from dpsr.likes import plan
from dpsr.likes.activity import Activity
from dpsr.likes.evidence import STRENGTHS, taste_evidence
from dpsr.likes.forecast import favour_of
from dpsr.likes.popularity import Popularity
from dpsr.likes.scores import by_factors, by_items, mean_of
from dpsr.likes.taste import Moments, Taste, learn_taste
from dpsr.pipeline.likes import ask_popularity, read_taste
from dpsr.privacy.vault.people.asking import NoisyAnswer
from dpsr.privacy.vault.people.likes_vault import LikesVault
from dpsr.release.likes import own_rows
from dpsr.types.item_side import ACTIVITY_BINS, activity_of
from dpsr.types.likes_side import LikesSide

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DELTA, PART, WIDER = 1e-5, 0.35, 2.5
"""Of what counts leave, the part for score steps; how many times as many cells as are frequent they ask about."""

AXES = (2, 8, 16)


@dataclass(frozen=True, eq=False)
class People:
    """Raw people, a budget and the noise that goes with it."""

    baskets: Baskets
    mu: float
    rng: np.random.Generator

    def deviation(self, share: float) -> float:
        """Of the noise on a sum of vectors of length one."""
        return 1 / (self.mu * np.sqrt(share))

    def popularity(self) -> tuple[Popularity, float, int]:
        """Rounds of counts as the pipeline asks them, what they leave, and how many cells are frequent."""
        asked = Asked(self, self.baskets.shape[1])
        numbers = np.bincount(activity_of(np.diff(self.baskets.indptr)), minlength=ACTIVITY_BINS).astype(float)
        popularity, ahead = ask_popularity(cast(LikesVault, asked), Activity(numbers))
        return popularity, asked.left - plan.NUMBERS, ahead.n_frequent

    def _counts(self, cells: Ints) -> Floats:
        x = self.baskets[:, cells]
        length = np.sqrt(np.maximum(np.asarray(x.sum(axis=1)).ravel(), 1e-9))
        return np.asarray((sp.diags(1 / length) @ x).sum(axis=0)).ravel()

    def moments(self, share: float, cells: Ints, centre: Floats) -> Moments:
        """Noisy second moments of presence, as the vault has them."""
        x, g, T = self.baskets[:, cells].toarray(), favour_of(centre), len(cells)
        n = x.sum(axis=1)
        x, n = x[n >= 2], n[n >= 2]
        rows = g * (x - n[:, None] * centre)
        square = (rows**2).sum(axis=1)
        rows *= ((square**2 - (rows**4).sum(axis=1)) ** -0.25)[:, None]
        noise = self.deviation(share) / np.sqrt(2)
        above = np.triu(rows.T @ rows + self.rng.normal(0, noise, (T, T)), 1)
        activity = Activity(np.bincount(activity_of(n.astype(np.int64)), minlength=ACTIVITY_BINS).astype(float))
        return Moments(above + above.T, noise, activity.pairs, activity.squares(centre, g), centre, g)

    def scores(self, share: float, cells: Ints, favour: Floats, taste: Taste, centre: Floats) -> tuple[Floats, ...]:
        """A score step over `cells`, of which the first are the frequent ones: the answer, C and K."""
        x, v, k = self.baskets[:, cells].tocsr(), taste.loadings, taste.n_axes
        loadings, frequent = np.zeros((len(cells), k)), (np.arange(len(cells)) < len(v)).astype(float)
        loadings[: len(v)] = v
        gram = (v * centre[:, None]).T @ v + np.einsum("j,jab->ab", centre, taste.covariances)
        answer, C, K = np.zeros((len(cells), k)), np.zeros(k), np.zeros((k, k))
        for u in range(x.shape[0]):
            own = x.indices[x.indptr[u] : x.indptr[u + 1]]
            n = frequent[own].sum()
            if n < 2:
                continue
            c = 1 / np.linalg.norm(favour[own])
            ridge = np.linalg.inv(np.eye(k) + (n - 1) * gram)
            f = (loadings[own].sum(axis=0) - loadings[own] - np.outer(n - frequent[own], centre @ v)) @ ridge
            h = f / np.maximum(np.linalg.norm(f, axis=1, keepdims=True), 1e-12)
            answer[own] += c * favour[own][:, None] * h
            C += c * h.sum(axis=0)
            K += c * h.T @ f
        return answer + self.rng.normal(0, self.deviation(share), answer.shape), C, K


@dataclass
class Asked:
    """The questions of a vault that rounds of counts ask, with plain noise."""

    people: People
    n_cells: int
    left: float = 1 - plan.NUMBERS
    unit: str = "user"
    declared: bool = True

    def counts(self, share: float, cells: Ints) -> NoisyAnswer:
        """A round."""
        self.left -= share
        noise = self.people.deviation(share)
        values = self.people._counts(cells)
        return NoisyAnswer(values + self.people.rng.normal(0, noise, len(cells)), noise)

    def counts_noise(self, share: float) -> float:
        """Of a round."""
        return self.people.deviation(share)

    def moments_noise(self, share: float) -> float:
        """Of second moments."""
        return self.people.deviation(share) / 2**0.5


def put_together(answer: Floats, C: Floats, K: Floats, size: Floats, noise: float, before: Taste) -> Taste:
    """The posterior of every v_j where answer_j = size_j (C + K v_j) + noise, and `before` is what was known."""
    wanted = np.linalg.inv(before.covariances)
    covariances = np.linalg.inv(wanted + (size**2 / noise**2)[:, None, None] * (K.T @ K))
    told = (size / noise**2)[:, None] * ((answer - np.outer(size, C)) @ K)
    right = np.einsum("jab,jb->ja", wanted, before.loadings) + told
    return Taste(np.einsum("jab,jb->ja", covariances, right), covariances)


def leading_axes(taste: Taste, centre: Floats, k: int) -> Taste:
    """The k strongest axes."""
    v = taste.loadings
    turn = np.linalg.eigh((v * centre[:, None]).T @ v)[1][:, ::-1][:, :k]
    return Taste(v @ turn, np.einsum("ka,jkl,lb->jab", turn, taste.covariances, turn))


def widened(taste: Taste, centre: Floats, n_cells: int) -> Taste:
    """The same for more cells, of which nothing is known but the spread of the frequent ones."""
    v, k, T = taste.loadings, taste.n_axes, len(taste.loadings)
    spread = np.diag(np.diag((v * centre[:, None]).T @ v + np.einsum("j,jab->ab", centre, taste.covariances)))
    covariances = np.tile(np.maximum(spread, 1e-4 * np.eye(k)), (n_cells, 1, 1))
    covariances[:T] = taste.covariances
    return Taste(np.concatenate([v, np.zeros((n_cells - T, k))]), covariances)


def recall(side: LikesSide, split: LikesSplit) -> float:
    """Recall@20 of what a side makes of people's own baskets."""
    return score_lists(_Lists(side), split).means["recall_at_20"]


@dataclass(frozen=True, eq=False)
class _Lists:
    side: LikesSide

    def scores_of(self, baskets: Baskets) -> Floats:
        rows = own_rows(baskets.indptr, baskets.indices.astype(np.int64), baskets.data)
        return np.asarray(self.side.people(rows) @ self.side.items(np.arange(self.side.n_cells)).T)


def figures(split: LikesSplit, epsilon: float, seed: int) -> Iterator[tuple[str, float]]:
    """Recall@20 of all moments, of fewer, and of fewer with a score step, by number of axes and of cells."""
    people = People(
        baskets_of(split.train.mask).tocsr(),
        float(affordable_squared_mu(epsilon, DELTA)) ** 0.5,
        np.random.default_rng(seed),
    )
    popularity, left, T = people.popularity()
    shown, order = popularity.shown / popularity.shown.max(), popularity.order
    yield "popularity", recall(LikesSide.of_popularity(shown), split)
    if not T:
        return
    centre = shown[order[:T]] / shown[order[:T]].sum()
    for name, part in (("all for second moments", 1.0), ("without what a score step takes", 1 - PART)):
        moments = people.moments(part * left, order[:T], centre)
        evidence = taste_evidence(moments)
        yield name, recall(read_taste(shown, order[:T], moments, evidence), split)
    taste = learn_taste(moments, evidence.strength or STRENGTHS[0])
    cells = order[: int(WIDER * T)]
    size = shown[cells] / shown[cells].sum()
    favour = favour_of(size)
    for k in (k for k in AXES if k < T // 10):
        axes = leading_axes(taste, centre, k)
        answer, C, K = people.scores(PART * left, cells, favour, axes, centre)
        noise = people.deviation(PART * left)
        after = put_together(answer, C, K, favour * size, noise, widened(axes, centre, len(cells)))
        for words, many in (("frequent cells", T), ("more cells", len(cells))):
            told = Taste(after.loadings[:many], after.covariances[:many])
            known = Moments(np.zeros((1, 1)), 1.0, 1.0, 1.0, size[:many] / size[:many].sum(), favour[:many])
            factors = by_factors(shown, cells[:many], known, told)
            yield f"score step, {k} axes, {words}", recall(factors, split)
            if many == T and evidence.plenty:
                both = mean_of(factors, by_items(shown, cells[:T], moments, taste))
                yield f"score step, {k} axes, with item-item", recall(both, split)


def tables(data: Path) -> dict[str, Callable[[int], Interactions]]:
    """The sets of a folder, and made-up ones with many people."""
    found = {one.name: one.interactions for one in sets_in_folder(data)}

    def crowd(seed: int) -> Interactions:
        size = {"n_users": 6_750, "n_items": 3_700, "n_ratings": 1_000_000}
        return Interactions.of_mask(realistic(seed, rank=12, selection=2.0, **size).mask, "made up")

    return {**found, "6,750 made-up people, 3,700 items": crowd}


def main() -> None:
    """One table a set."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.likes_ablation")
    parser.add_argument("data", type=Path)
    parser.add_argument("--epsilon", default="1,3,10")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    budgets = [float(one) for one in options.epsilon.split(",")]
    for name, read in tables(options.data).items():
        if options.only not in name:
            continue
        found: dict[str, dict[float, list[float]]] = {}
        for seed in range(options.seeds):
            split = HeldOutPeople().split(read(seed), seed)
            for epsilon in budgets:
                for what, figure in figures(split, epsilon, seed):
                    found.setdefault(what, {}).setdefault(epsilon, []).append(figure)
        print(f"\n**{name}: Recall@20, {options.seeds} seeds**\n")
        print("| " + " | ".join(["", *(f"ε = {one:g}" for one in budgets)]) + " |\n|" + " --- |" * (1 + len(budgets)))
        for what, row in found.items():
            cells = [f"{np.mean(row[one]):.4f}" if one in row else "–" for one in budgets]
            print("| " + " | ".join([what, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
