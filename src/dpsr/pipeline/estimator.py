"""What every pipeline shares: its settings, what it is fitted to, who pays, what it says while it works, and what it
can do once it is fitted.

Settings have scikit-learn's manners without its import, which alone would take a hundred megabytes:
`sklearn.base.clone` asks for no more than `Parameters`.

A fit says the name of every stage as it begins, to whoever listens. A terminal and a notebook do; a notebook shows one
line below the cell, which changes and stays when all is done. Names are fixed: no message depends on a rating.
"""

from __future__ import annotations

import logging
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar, Self, overload

import numpy as np
import numpy.typing as npt

from dpsr.certify import Certificate
from dpsr.certify.certificate import ChargeReference
from dpsr.certify.folder import MANIFEST, sha256_of
from dpsr.data.files.catalogue import read_catalogue
from dpsr.data.ratings import checked_ratings
from dpsr.data.raw_statistics import root_mean_square_error
from dpsr.engine.raw import RawInteractions, RawRatings
from dpsr.errors import DataError, NotFittedError, ParameterError
from dpsr.pipeline.account import Account, check_payable, fingerprint_of
from dpsr.pipeline.made_up import with_made_up
from dpsr.privacy.ledger.ledger import Charge
from dpsr.privacy.noise import NoiseSource
from dpsr.release import Personalised, Recommendations, atomic_folder
from dpsr.release.folder.write import write_release
from dpsr.release.likes import LikesRelease, PersonalisedLikes
from dpsr.release.lists.ranking import RecommendationLists
from dpsr.release.people import PersonalisedPeople, check_takes_new_people
from dpsr.release.release import ManyIds, Unknown
from dpsr.report import folder_pages
from dpsr.types import Catalogue, Model
from dpsr.types.coordinates import Census, Ids

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


@contextmanager
def shown_in_notebook() -> Iterator[None]:
    """While this is open, a notebook shows every stage that is announced; elsewhere nothing happens."""
    if not _is_notebook():
        yield
        return
    show: Any = import_module("IPython.display")  # it is there: this is its notebook
    start, line = perf_counter(), show.display(show.HTML("dpsr …"), display_id=True)

    def begin(stage: str) -> None:
        line.update(show.HTML(f"dpsr: {escape(stage)} … ({perf_counter() - start:.0f} s)"))

    with listening(begin):
        yield
    line.update(show.HTML(f"dpsr: done in {perf_counter() - start:.1f} s"))


def _is_notebook() -> bool:
    """Not a terminal or a script."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return getattr(shell, "kernel", None) is not None


def check_enough(census: Census) -> None:
    """Refuse rows with nobody to learn from, or nothing to tell apart; one person's own list needs no more than one."""
    if min(census.n_users, census.n_items) < 2:
        raise DataError(
            f"at least 2 users and 2 items are needed to learn from, found {census.n_users:,} and {census.n_items:,}. "
            'Check that user="..." and item="..." (or --user, --item) name the right columns.'
        )


def check_timed(census: Census, unit: str) -> None:
    """Refuse to keep times that there are none of, or that no release of this unit has."""
    if unit != "value":
        raise ParameterError(
            f"a release that protects unit = {unit!r} holds nothing about anybody, so no times can be kept in it. "
            "Leave out timestamps=True (or --timestamps)."
        )
    if not census.timed:
        raise DataError(
            "times were to be kept, and the ratings have none: no column was taken for them. Name the column with "
            'timestamp="..." (or --timestamp COLUMN) when the ratings are read, or leave out timestamps=True '
            "(or --timestamps)."
        )


UNCHARGED = (
    "no ledger was charged: nobody adds this fit up with other releases of the same data. Keep count with "
    "fit(ratings, ledger='ledger.db') (to begin: dpsr ledger init). Said once."
)
_said = False
_log = logging.getLogger("dpsr")


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
        """As one would write it: settings that were left alone are left out, but never epsilon."""
        values = [(p, getattr(self, p.name)) for p in self._parameters()]
        own = [(p.name, value) for p, value in values if p.name == "epsilon" or not _is_default(value, p.default)]
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in own)})"


def _is_default(value: Any, default: Any) -> bool:
    """Whether a setting was left alone; lists and arrays are not compared element by element."""
    return value is default or (np.ndim(value) == 0 and bool(value == default))


class PrivateRecommender(Parameters, ABC):
    """A private recommender with scikit-learn manners. Subclasses set `release_` in `fit`."""

    release_: Any
    _payment: tuple[Account, Charge] | None = None
    epsilon: float
    random_state: int | None
    as_published: bool = False
    unit: str = "value"
    delta: float | None = None
    charged_as: ClassVar[str]
    """The name of the method in a ledger's history."""

    @np.errstate(under="ignore")  # a session in which numpy raises must not lose what it paid for
    def fit(
        self,
        ratings: RawRatings | RawInteractions,
        *,
        ledger: str | Path | None = None,
        dataset: str | None = None,
        note: str = "",
        same_data: bool = False,
        another_file: bool = False,
        timestamps: bool = False,
    ) -> Self:
        """Ask for noisy answers, learn from them, and keep the result as `release`. Every call spends epsilon again.

        Args:
            ratings: `Ratings`; or `Interactions`, at the units "rating" and "user".
            ledger: A file or address of a ledger that is charged before anything is asked, as `dpsr release --ledger`
                does; `save` then records the folder in it. Without one nobody adds releases up.
            dataset: Which data set of the ledger pays; may be left out where there is one only.
            note: A line for the ledger's history, such as what the release is for.
            same_data: The same ratings may be charged to more than one data set.
            another_file: The data set may have grown or changed since its last charge.
            timestamps: Keep in the release when ratings were given, which is public then; left out otherwise. At unit
                "value" only, and refused where the ratings have no times.

        Returns:
            The estimator itself, fitted.
        """
        raw = self.checked(ratings)
        check_enough(raw.mask.census)
        if timestamps:
            check_timed(raw.mask.census, self.unit)
        raw = raw if timestamps else raw.without_timestamps()
        with shown_in_notebook():
            if ledger is None:
                self._say_uncharged()
                self._payment = None
                return self.fit_ratings(raw)
            self.check()
            check_payable(seeded=self.random_state is not None, as_published=self.as_published)
            answers: dict[str, Any] = {"same_data": same_data, "another_file": another_file}
            account = Account.open(
                str(ledger), dataset, self.epsilon, note, **answers, unit=self.unit, delta=self.delta
            )
            return self._fit_charged(raw, account)

    def check(self) -> None:
        """Refuse settings that do not go together, before anything is spent."""

    def checked(self, ratings: object) -> RawRatings | RawInteractions:
        """What this pipeline can be fitted to; for anything else, what to write instead."""
        return checked_ratings(ratings)

    @abstractmethod
    def fit_ratings(self, ratings: Any, *, charge: ChargeReference | None = None) -> Self:
        """Spend the budget on ratings in memory; `charge` is the entry of a ledger that paid."""

    def _fit_charged(self, ratings: RawRatings | RawInteractions, account: Account) -> Self:
        fingerprint = fingerprint_of(ratings.mask.census, self.unit)
        account.check_budget()
        account.check(fingerprint)
        announce("Charging the ledger")
        charge = account.charge(self.charged_as, fingerprint)
        paid = self.unfitted().set_params(**charge.settings).fit_ratings(ratings, charge=charge.reference)
        charge.check(paid.certificate)
        for name, learned in vars(paid).items():
            if name.endswith("_"):
                setattr(self, name, learned)
        self._payment = account, charge
        return self

    def _say_uncharged(self) -> None:
        """Once in a process; a seeded run is not private anyway."""
        global _said
        if not _said and self.random_state is None:
            _said = True
            _log.warning(UNCHARGED)

    def score(self, ratings: RawRatings, y: object = None) -> float:
        """Minus the RMSE on ratings that were not fitted: greater is better, as scikit-learn's tools expect.

        It compares with raw ratings, so it is the curator's own figure and **not private**.

        Args:
            ratings: Ratings that were held out, for example by `ratings.split()`.
            y: Not read; scikit-learn passes one.

        Returns:
            A number that is zero at best.
        """
        return -root_mean_square_error(checked_ratings(ratings), self.predict)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def predict(self, users: Ids, items: Ids) -> npt.NDArray[np.float64]:
        """Predicted ratings of pairs of a user and an item; where people are protected, those of a stranger.

        Args:
            users: Ids, as many as items or one for all; for an unknown one, the item's mean is predicted.
            items: Ids, as many as users or one for all; of an unknown one, the user's mean.

        Returns:
            One number for each pair, inside the scale; popularity where interactions were fitted.
        """
        return self.release.predict(users, items)

    @overload
    def recommend(self, user: str | int, n: int = 10, *, unknown: Unknown = "error") -> Recommendations: ...

    @overload
    def recommend(self, user: ManyIds, n: int = 10, *, unknown: Unknown = "error") -> RecommendationLists: ...

    def recommend(self, user: Any, n: int = 10, *, unknown: Unknown = "error") -> Any:
        """The items that somebody has not rated and is most likely to meet and like, best first.

        Where people are protected the release knows nobody: ask `personalise(ratings).recommend(user)` instead.

        Args:
            user: An id, or several of them.
            n: How many items.
            unknown: What to do about somebody the release does not know: "error", or "average" for the list of the
                average user.

        Returns:
            For one user `Recommendations`, which are `items, scores` and have `to_pandas`; for several, one table of
            lists with `to_pandas`.
        """
        return self.release.recommend(user, n, unknown=unknown)

    def recommend_all(self, path: str | Path, n: int = 10, *, overwrite: bool = False) -> Path:
        """Write every user's list to one file, whole or not at all.

        Args:
            path: A `.parquet` or `.csv` file.
            n: How many items a list has.
            overwrite: Whether a file that is there may be replaced.

        Returns:
            The path. The columns are user, rank, item, score and, where there are titles, title.
        """
        return self.release.recommend_all(path, n, overwrite=overwrite)

    def fold_in(self, items: Ids, values: npt.ArrayLike | None = None, n: int = 10) -> Recommendations:
        """A list for somebody new, from their own ratings and what was released about items; nothing is stored.

        Args:
            items: Ids of what they rated, or met.
            values: Their ratings, one for each item; weights where interactions were fitted, which may be left out.
            n: How many items.

        Returns:
            `Recommendations`: items that are not among theirs, best first.
        """
        if values is None and not isinstance(self.release, LikesRelease):
            raise ParameterError("somebody new is known by their own ratings: fold_in(items, values).")
        return self.release.fold_in(items, values, n)

    def personalise(
        self, ratings: RawRatings | RawInteractions, *, new_people: bool = False
    ) -> Personalised | PersonalisedPeople | PersonalisedLikes:
        """Predictions and lists for each person from their own raw rows and the release: for that person alone.

        Nothing is spent, because nobody sees what was made from another's rows (joint differential privacy).

        Args:
            ratings: People's own rows, of the kind that was fitted.
            new_people: At "rating" and "user": whether these people were not fitted. Then nothing of their own is
                taken out of what is known about items.

        Returns:
            Something with `predict`, `recommend` and `recommend_all`, for the people in `ratings`.
        """
        if not new_people:
            return self.release.personalise(ratings)
        return check_takes_new_people(self.release).personalise(checked_ratings(ratings), new_people=True)

    def with_titles(self, items: str | Path | Catalogue) -> Self:
        """Let lists and the card name items by their titles, where they have one.

        Args:
            items: A file (CSV, Parquet, ...) with a column of ids and one of titles, or a `Catalogue`.

        Returns:
            The estimator itself.
        """
        catalogue = items if isinstance(items, Catalogue) else read_catalogue(items)
        self.release_ = self.release.with_titles(catalogue)
        return self

    @np.errstate(under="ignore")
    def save(self, path: str | Path, *, overwrite: bool = False, people: int | None = None) -> Path:
        """Write the release folder with its card, whole or not at all; a ledger that paid records it first.

        Args:
            path: The folder; `load_release(path)` reads it back and checks it.
            overwrite: Whether a release that is there may be replaced.
            people: At "rating" and "user": how many made-up people the folder holds, 0 for none; about as many as
                there are unless told. They are drawn from the release alone and cost nothing.

        Returns:
            The path.
        """
        contents, payment = self.release.contents, self._payment
        if people is not None:
            contents = with_made_up(contents, people)
        with atomic_folder(Path(path), overwrite=overwrite) as draft:
            write_release(contents, draft, pages=folder_pages(contents))
            if payment is not None:
                account, charge = payment
                account.record_once(charge, contents.certificate, sha256_of((draft / MANIFEST).read_bytes()))
        return Path(path)

    @property
    def release(self) -> Any:
        """What may be shared: a `Release`, or what is known about items where people are protected; after `fit`."""
        if not hasattr(self, "release_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet. Call fit(ratings) first.")
        return self.release_

    @property
    def certificate(self) -> Certificate:
        """What was promised and what it cost; `print` shows it in one line."""
        return self.release.certificate

    @property
    def model_(self) -> Model:
        """The factors of users and items behind `predict`, at the unit "value"."""
        return self.release.model

    def _noise(self) -> NoiseSource:
        """The system's generator, unless a seed was given: then everything is marked NOT PRIVATE."""
        return NoiseSource.of_seed(self.random_state)

    def _public_settings(self) -> dict[str, Any]:
        """The constructor's arguments without the seed and what is a table of its own, as a folder reads them back."""
        return {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in self.get_params().items()
            if name not in ("random_state", "items")
        }
