"""What every pipeline shares once it is fitted: predictions, recommendations, a certificate and a folder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpsr.pipeline.cards import pages_of
from dpsr.pipeline.parameters import Parameters
from dpsr.privacy import NoiseSource
from dpsr.release import Recommendations, Release
from dpsr.release.folder import write_release
from dpsr.report import Budget
from dpsr.types import Certificate, Model
from dpsr.types.ids import Ids
from dpsr.types.raw import RawRatings


class PrivateRecommender(Parameters, ABC):
    """A private recommender with scikit-learn manners. Subclasses set `release_` in `fit`."""

    release_: Release
    random_state: int | None

    @abstractmethod
    def fit(self, ratings: RawRatings) -> Self:
        """Ask, infer, release."""

    def predict(self, users: Ids, items: Ids) -> npt.NDArray[np.float64]:
        """Predicted ratings inside the scale; unknown users and items get the best that is known."""
        return self.release.predict(users, items)

    def recommend(self, user: str | int, n: int = 10) -> Recommendations:
        """The `n` items that `user` has not rated and is most likely to meet and like."""
        return self.release.recommend(user, n)

    def recommend_all(self, path: str | Path, n: int = 10, *, overwrite: bool = False) -> Path:
        """Write every user's list to one file (`.parquet` or `.csv`), whole or not at all."""
        return self.release.recommend_all(path, n, overwrite=overwrite)

    def fold_in(self, items: Ids, values: npt.ArrayLike, n: int = 10) -> Recommendations:
        """Recommendations for somebody new, from their own ratings and the released item side; nothing is stored."""
        return self.release.fold_in(items, values, n)

    def save(self, path: str | Path, *, overwrite: bool = False, budget: Budget | None = None) -> Path:
        """Write the release folder with its card, whole or not at all; `budget` is what a ledger said, for the card."""
        contents = self.release.contents
        return write_release(contents, Path(path), overwrite=overwrite, pages=pages_of(contents, budget))

    @property
    def release(self) -> Release:
        """The fitted release; an error before `fit`."""
        if not hasattr(self, "release_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"this {type(self).__name__} is not fitted yet. Call fit(ratings) first.")
        return self.release_

    @property
    def certificate(self) -> Certificate:
        return self.release.certificate

    @property
    def model_(self) -> Model:
        return self.release.model

    def _noise(self) -> NoiseSource:
        """The system's generator, unless a seed was given: then everything is marked NOT PRIVATE."""
        return NoiseSource.system() if self.random_state is None else NoiseSource.seeded(self.random_state)

    def _public_settings(self) -> dict[str, Any]:
        """The constructor's arguments without the seed."""
        return {name: value for name, value in self.get_params().items() if name != "random_state"}
