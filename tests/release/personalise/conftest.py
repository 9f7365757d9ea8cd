"""Small releases that bought noisy ratings, and that did not, with the raw ratings they were made from."""

from typing import NamedTuple

import pytest

from dpsr import DPSR, Ratings
from dpsr.data import realistic
from dpsr.release import Release


class Fitted(NamedTuple):
    """A release and the raw ratings: the part it was made from, and the part nobody has seen."""

    release: Release
    train: Ratings
    test: Ratings


def fitted(epsilon):
    train, test = realistic(3, n_users=200, n_items=120, n_ratings=4_500).split(0.2, seed=0)
    return Fitted(DPSR(epsilon, random_state=1).fit(train).release, train, test)


@pytest.fixture(scope="session")
def with_readings():
    """Epsilon buys a noisy reading of every rating."""
    return fitted(3.0)


@pytest.fixture(scope="session")
def sums_only():
    """Epsilon buys sums of items and users alone."""
    return fitted(0.2)


@pytest.fixture(params=["with_readings", "sums_only"])
def either(request):
    return request.getfixturevalue(request.param)
