"""Who computes the lists behind the server: our two kinds of release, and implicit's alternating least squares.

python -m benchmarks.serving_sides "implicit, not private" FOLDER      listens until it is stopped
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from dpsr import DPSR, Ratings
from dpsr.data import realistic
from dpsr.release import Recommendations
from dpsr.serve.app import application
from dpsr.serve.loaded import Served
from dpsr.serve.metrics import Metrics
from dpsr.web.guard import allowed_hosts
from dpsr.web.listening import address_of, answer_until_stopped, bound

SIDES = ("dpsr, value", "dpsr, people", "implicit, not private")


def made_up(*, small: bool = False) -> Ratings:
    """Ratings of the size of a small shop."""
    shape = (200, 100, 4_000) if small else (5_000, 5_000, 250_000)
    return realistic(0, n_users=shape[0], n_items=shape[1], n_ratings=shape[2])


def prepare(folder: Path, *, small: bool) -> None:
    """Release both kinds into `folder`."""
    ratings = made_up(small=small)
    DPSR(1.0).fit(ratings).save(folder / "value")
    DPSR(1.0, unit="user", delta=1e-6, items=ratings.mask.item_ids.to_pylist()).fit(ratings).save(folder / "people")


class ImplicitRelease:
    """implicit's model with the three methods that the server asks of a release."""

    def __init__(self, ratings: Ratings) -> None:
        from implicit.cpu.als import AlternatingLeastSquares

        mask = ratings.mask
        self.mask, self.scale = mask, ratings.scale
        self.rated = csr_matrix(
            (np.ones(mask.n_ratings, np.float32), mask.items.copy(), mask.indptr.copy()), shape=mask.shape
        )
        self.model = AlternatingLeastSquares(factors=32, iterations=5, num_threads=1, random_state=0)
        self.model.fit(self.rated, show_progress=False)

    def recommend(self, user: str, n: int, *, unknown: str) -> Recommendations:
        """The list of a known user."""
        code = int(self.mask.user_codes([user])[0])
        return self._list(self.model.recommend(code, self.rated[code], N=n))

    def fold_in(self, items: list[str], values: list[float], n: int) -> Recommendations:
        """The list of somebody new."""
        codes = self.mask.item_codes(items)
        row = csr_matrix((np.ones(len(codes), np.float32), (np.zeros(len(codes), int), codes)), (1, self.mask.n_items))
        return self._list(self.model.recommend(0, row, N=n, recalculate_user=True))

    def _list(self, found: Any) -> Recommendations:
        return Recommendations(self.mask.item_ids.take(found[0]).to_pylist(), found[1].astype(np.float64))


def main() -> None:
    """Listen as one of the sides."""
    side, folder = sys.argv[1], Path(sys.argv[2])
    with bound("127.0.0.1", 0) as opened:
        hosts = allowed_hosts("127.0.0.1", opened.getsockname()[1])
        served: Any
        if side.startswith("dpsr"):
            served = Served(folder / side.removeprefix("dpsr, "))
        else:
            served = SimpleNamespace(release=ImplicitRelease(made_up()))
        where = address_of(opened)
        app = application(served, Metrics(), hosts)
        answer_until_stopped(app, opened, lambda: print(where, file=sys.stderr, flush=True))


if __name__ == "__main__":
    main()
