"""What every pipeline shares: settings, the name of the stage it is in, and what it can do once it is fitted.

Settings have scikit-learn's manners without its import, which alone would take a hundred megabytes;
`sklearn.base.clone` asks for no more. Names of stages are fixed: no message depends on a rating.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpsr.certify import Certificate
from dpsr.errors import ParameterError
from dpsr.pipeline.cards import pages_of
from dpsr.privacy.noise import NoiseSource
from dpsr.release import Personalised, Recommendations, Release
from dpsr.release.folder.files import write_release
from dpsr.types import Model
from dpsr.types.mask import Ids
from dpsr.types.raw import RawRatings


class Parameters:
    """The constructor only stores its arguments, under their own names."""

    @classmethod
    def _parameters(cls) -> list[Parameter]:
        return list(signature(cls).parameters.values())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments as they are now."""
        return {parameter.name: getattr(self, parameter.name) for parameter in self._parameters()}

    def set_params(self, **params: Any) -> Self:
        """Change some of them."""
        names = [parameter.name for parameter in self._parameters()]
        for name, value in params.items():
            if name not in names:
                raise ParameterError(f"{type(self).__name__} has the settings {', '.join(names)}, found {name}.")
            setattr(self, name, value)
        return self

    def unfitted(self) -> Self:
        """Another with the same settings that has learned nothing."""
        return type(self)(**self.get_params())

    def __repr__(self) -> str:
        """As one would write it: settings that were left alone are left out."""
        own = [(p.name, getattr(self, p.name)) for p in self._parameters() if getattr(self, p.name) != p.default]
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in own)})"


Listener = Callable[[str], None]

_listener: ContextVar[Listener | None] = ContextVar("dpsr_progress", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """While this is open, `listener` hears the name of every stage as it begins."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def announce(stage: str) -> None:
    """A stage begins."""
    listener = _listener.get()
    if listener is not None:
        listener(stage)


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

    def personalise(self, ratings: RawRatings) -> Personalised:
        """Predictions and lists for each person from their own raw ratings and the release: for that person alone."""
        return self.release.personalise(ratings)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the release folder with its card, whole or not at all."""
        contents = self.release.contents
        return write_release(contents, Path(path), overwrite=overwrite, pages=pages_of(contents))

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
