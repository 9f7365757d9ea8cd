"""Was this rating in the training table? And: how many ratings can be read off the output?

Membership (Yeom et al. 2018): a model errs less on what it was trained on, so the attacker, who knows the rating's
value, calls "in" where the squared error is small. Training ratings are the members, held-out ones the others. Where
who rated what is public, as in our promise, being in the table is no secret and nothing bounds the attacker; the figure
then says how far the *value* shines through.

Reconstruction: every training rating is guessed as the level nearest to what the output says about it; the advantage is
the share of right guesses among training ratings over that among held-out ones, which the same model predicts without
having seen them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats
from dpsr.evaluate.attacks.guessing import Guesses, judge
from dpsr.evaluate.ranking import Predictor
from dpsr.types.raw import RawRatings


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
