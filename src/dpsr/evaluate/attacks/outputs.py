"""Attacks on what any method puts out: guess a rating's value, whether it was there, and read ratings off.

**Value.** A few ratings (canaries) are set to the bottom or to the top of the scale by independent fair coins; the
method is fitted to the table with them; the attacker knows everything but the coins and sees what the method puts out:
its predictions at the canary, at the same user's and the same item's other cells, and the released value where there is
one. Each canary is one trial, so that a single fit gives hundreds of them (Steinke, Nasr and Jagielski 2023). A
logistic guesser is trained on half of the canaries and judged on the other half.

No attack that reads only the output can beat the bound of `guessing`; how close this one comes says how much of the
promise is used up, not how much an attacker with more knowledge would get (`mechanisms` has that for our own tables).

**Membership** (Yeom et al. 2018): a model errs less on what it was trained on, so the attacker, who knows the rating's
value, calls "in" where the squared error is small. Training ratings are the members, held-out ones the others. Where
who rated what is public, as in our promise, being in the table is no secret and nothing bounds the attacker; the figure
then says how far the *value* shines through.

**Reconstruction**: every training rating is guessed as the level nearest to what the output says about it; the
advantage is the share of right guesses among training ratings over that among held-out ones, which the same model
predicts without having seen them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Bools, Floats, Ints
from dpsr.engine.raw import RawRatings
from dpsr.errors import ParameterError
from dpsr.evaluate.attacks.guessing import Guesses, judge
from dpsr.evaluate.metrics.ranking import Predictor

SHARE, LEAST, BESIDE = 0.05, 40, 20
"""Share of ratings that become canaries, how few they may be, and how many other cells of a row are looked at."""


@dataclass(frozen=True, eq=False)
class Canaries:
    """The table with coins in it: `places` are positions in the mask, `top` how the coins fell."""

    ratings: RawRatings
    places: npt.NDArray[np.int64]
    top: Bools


def plant(ratings: RawRatings, seed: int) -> Canaries:
    """Choose ratings and toss coins for their values."""
    rng = np.random.default_rng(seed)
    n = min(len(ratings), max(LEAST, round(SHARE * len(ratings))))
    places = np.sort(rng.choice(len(ratings), n, replace=False))
    top = rng.random(n) < 0.5
    levels = ratings.levels.copy()
    levels[places] = np.where(top, ratings.scale.n_levels - 1, 0)
    return Canaries(replace(ratings, levels=levels), places, top)


def attack_values(
    canaries: Canaries, predictor: Predictor, released: Floats | None, seed: int, *, others_only: bool = False
) -> Guesses:
    """Guess every coin from the output; `others_only` keeps to what people other than the canary's user are shown."""
    features = evidence(canaries, predictor, released, seed, others_only=others_only)
    learn = np.random.default_rng(seed + 1).random(len(canaries.top)) < 0.5
    guesser = _logistic_guesser().fit(features[learn], canaries.top[learn])
    return judge(guesser.decision_function(features), canaries.top, learn=learn)


def _logistic_guesser() -> Any:
    try:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError as error:
        raise ParameterError(
            "guessing values takes scikit-learn, which is not installed. Install dpsr[peers]."
        ) from error
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.1))


def evidence(
    canaries: Canaries, predictor: Predictor, released: Floats | None, seed: int, *, others_only: bool = False
) -> Floats:
    """What the output says near each canary, one row each."""
    mask, rng = canaries.ratings.mask, np.random.default_rng(seed)
    users, items = (codes[canaries.places].astype(np.int64) for codes in (mask.users, mask.items))
    by_item = np.argsort(mask.items, kind="stable")
    starts = np.concatenate([[0], np.cumsum(mask.item_counts)])
    column = _row_means(predictor, starts, by_item, items, canaries, rng)
    columns = [column, mask.item_counts[items].astype(np.float64)]
    if not others_only:
        here = predictor.predict(users, items)
        row = _row_means(predictor, mask.indptr, np.arange(mask.n_ratings), users, canaries, rng)
        columns += [here, here - row, here - column, row]
        if released is not None:
            columns += [released[canaries.places], released[canaries.places] - here]
    return np.column_stack([np.nan_to_num(column) for column in columns])


def _row_means(
    predictor: Predictor, starts: Ints, order: Ints, rows: Ints, canaries: Canaries, rng: np.random.Generator
) -> Floats:
    """The mean prediction over some of the other rated cells of each row (of users, or of items)."""
    mask, counts = canaries.ratings.mask, starts[rows + 1] - starts[rows]
    picks = order[starts[rows][:, None] + (rng.random((len(rows), BESIDE)) * counts[:, None]).astype(np.int64)]
    flat = picks.ravel()
    found = predictor.predict(mask.users[flat].astype(np.int64), mask.items[flat].astype(np.int64))
    other = picks != canaries.places[:, None]
    overall = float(np.mean(found))  # a row of one rating has no other cell
    means = (found.reshape(picks.shape) * other).sum(axis=1) / np.maximum(other.sum(axis=1), 1)
    return np.where(other.any(axis=1), means, overall)


def attack_membership(predictor: Predictor, train: RawRatings, test: RawRatings, seed: int) -> Guesses:
    """As many members as others, drawn at random."""
    rng = np.random.default_rng(seed)
    n = min(len(train), len(test))
    errors = [
        _errors(predictor, ratings, np.sort(rng.choice(len(ratings), n, replace=False))) for ratings in (train, test)
    ]
    scores, truth = -np.concatenate(errors), np.repeat([True, False], n)
    return judge(np.nan_to_num(scores), truth, learn=rng.random(2 * n) < 0.5)


def attack_reconstruction(
    predictor: Predictor, released: Floats | None, train: RawRatings, test: RawRatings
) -> tuple[float, float]:
    """Shares of ratings read off exactly: of training ratings, and of ratings the output never saw."""
    seen = _said(predictor, train) if released is None else released
    return _hits(train, seen), _hits(test, _said(predictor, test))


def _said(predictor: Predictor, ratings: RawRatings) -> Floats:
    return predictor.predict(ratings.mask.users.astype(np.int64), ratings.mask.items.astype(np.int64))


def _hits(ratings: RawRatings, said: Floats) -> float:
    values = ratings.scale.values
    nearest = np.clip(np.rint((np.nan_to_num(said) - values[0]) / (values[1] - values[0])), 0, len(values) - 1)
    return float(np.mean(nearest == ratings.levels))


def _errors(predictor: Predictor, ratings: RawRatings, rows: npt.NDArray[np.int64]) -> Floats:
    users, items = (codes[rows].astype(np.int64) for codes in (ratings.mask.users, ratings.mask.items))
    return np.asarray((ratings.values[rows] - predictor.predict(users, items)) ** 2)
