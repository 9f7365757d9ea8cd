"""Compile, once for everybody, the kernels that tests need: `make test` does it beside mypy, before the tests.

Left to the tests, every process compiles for itself what is not on disk yet: both workers, both processes of a study
and the programs that tests start come to the same kernels in the same minute. A kernel that is missing here is compiled
by the first test that needs it, as any other.
"""

import multiprocessing as mp
import warnings

import numpy as np

from dpsr import DPSR, Interactions
from dpsr.data import realistic
from dpsr.evaluate import score
from dpsr.evaluate.registry import METHODS, build

OF_PEOPLE = ("dpsr-user", "dpsr-rating")
OTHERS = ("dpsr", "dpsr-personalised", "dpsr-paper", "laplace-mf", "als", "svd++", "item-knn")
"""Methods that between them use the kernels of all others."""


def fit(names):
    """Fit and score methods on a small table."""
    parts = realistic(4, n_users=150, n_items=60, n_ratings=4_500).split(0.2, seed=0)
    for name in names:
        score(build(name, 1.0 if METHODS[name].budgeted else None, 1e-5, 0).fit(parts[0]), *parts)


def fit_people():
    """Ratings where people are protected, and interactions."""
    fit(OF_PEOPLE)
    cells = np.random.default_rng(0).choice(100 * 30, 900, replace=False)
    likes = Interactions.from_arrays(cells // 30, cells % 30)
    for unit in ("user", "rating"):
        DPSR(12.0, unit=unit, delta=1e-5, random_state=0).fit(likes).personalise(likes).table(5)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    beside = mp.get_context("fork").Process(target=fit_people)
    beside.start()
    fit(OTHERS)
    beside.join()
