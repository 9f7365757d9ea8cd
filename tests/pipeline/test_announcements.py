"""What a fit of people says while it works is what it does."""

import pytest

from dpsr import DPSR
from dpsr.data import realistic
from dpsr.pipeline.estimator import listening

MOMENTS = {"second moments", "second moments of presence", "pairs of presence"}


@pytest.fixture(scope="module")
def ratings():
    return realistic(0, n_users=1_500, n_items=30, n_ratings=25_000)


@pytest.mark.parametrize(
    ("likes", "unit", "epsilon", "asked"),
    [
        (False, "user", 0.5, False),
        (False, "user", 30.0, True),
        (False, "rating", 0.05, False),
        (False, "rating", 30.0, True),
        (True, "user", 0.05, False),
        (True, "user", 30.0, True),
    ],
)
def test_directions_of_taste_are_announced_where_they_are_asked_for(ratings, likes, unit, epsilon, asked):
    heard = []
    model = DPSR(epsilon, unit=unit, delta=1e-5, items=range(30), random_state=0)
    with listening(heard.append):
        model.fit(ratings.liked(4) if likes else ratings)
    assert any(part.name in MOMENTS for part in model.certificate.parts) == asked
    assert ("Asking for directions of taste" in heard) == asked
