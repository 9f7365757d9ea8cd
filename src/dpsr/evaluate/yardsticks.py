"""A private model beside the honest yardsticks: constant, bias and a tuned non-private factorisation.

The figures read raw ratings and are NOT PRIVATE.
"""

from __future__ import annotations

from dpsr.evaluate.baselines import ALS, Bias, Constant
from dpsr.evaluate.ranking import Predictor
from dpsr.evaluate.scores import Scores, score
from dpsr.types.raw import RawRatings


def against_yardsticks(models: dict[str, Predictor], train: RawRatings, test: RawRatings) -> dict[str, Scores]:
    """Scores of the given models and of every yardstick, on the same held-out ratings."""
    yardsticks = {
        "one constant": Constant(),
        "user + item bias, not private": Bias(),
        "factorisation (ALS), not private": ALS(),
    }
    fitted = {name: model.fit(train.mask, train.values, train.scale) for name, model in yardsticks.items()}
    return {name: score(model, train, test) for name, model in {**models, **fitted}.items()}
