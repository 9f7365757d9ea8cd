"""The estimator: one name for every pipeline, whatever is protected and whether people rate or only meet items.

The first fit on a machine compiles the kernels of its pipeline: said once, done at once, on made-up ratings, so that no
later stage seems to hang.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any, Self, cast

from dpsr.certify.amounts import check_epsilon
from dpsr.certify.certificate import ChargeReference, check_unit
from dpsr.data.ratings import Ratings, checked_ratings
from dpsr.data.synthetic import realistic
from dpsr.engine import MemoryTable
from dpsr.engine.incidence import GRID
from dpsr.engine.raw import InteractionTable, RawInteractions, RawRatings, RawTable, raw_table
from dpsr.errors import ParameterError
from dpsr.linalg.compiled import in_cache, is_kept, kernels_of, one_blas_thread
from dpsr.people import cells
from dpsr.pipeline.estimator import PrivateRecommender, announce, listening
from dpsr.pipeline.likes import check_likes, learn_likes
from dpsr.pipeline.paper import PaperDPSR
from dpsr.pipeline.people import declared_items, learn_people, learn_ratings
from dpsr.pipeline.value import RELEASED, Recipe, learn_value
from dpsr.privacy.vault import Vault
from dpsr.privacy.vault.journal import Journal
from dpsr.privacy.vault.people import PeopleVault, RatingVault
from dpsr.privacy.vault.people.likes_vault import PeopleLikesVault, SingleLikesVault
from dpsr.release import Contents, Release
from dpsr.release.likes import LikesRelease
from dpsr.release.people import ItemRelease
from dpsr.types import Catalogue, Mask, NoisyRatings, Scale
from dpsr.types.coordinates import Ids
from dpsr.value import sweep
from dpsr.value.allocation import Allocation, Components, Forecast, allocate, forecast
from dpsr.value.assembly import learn_mask_taste
from dpsr.value.design import shown_components
from dpsr.value.sweep import NOISY, WEIGHT

COMPILING = "Compiling, once on this machine (about half a minute)"
COMPILING_AGAIN = "Compiling, in every process: set NUMBA_CACHE_DIR to a folder to do it once"

_compiled: set[str] = set()


class DPSR(PrivateRecommender):
    """Differentially private sparse reconstruction: `fit` spends the budget on ratings (or interactions) once, and
    everything after that, predictions, lists and the folder that `save` writes, comes from the private result.

    Args:
        epsilon: The privacy budget: smaller is more private. Common choices are 0.5 to 3.
        unit: What is protected. "value": the value of every single rating, while who rated what is public and the
            release holds a row for every rating. "rating": that a rating exists, with its value. "user": every whole
            person with all their ratings. At the last two the release holds the item side and nothing about anybody;
            `personalise` then predicts for people from their own ratings.
        delta: Needed for "rating" and "user": it is as if with this chance nothing were promised, so below one over
            the number of people, for example 1e-6. At "value" none is taken: the promise holds without.
        items: For "rating" and "user": the public list of items, if there is one (ids, or a `Catalogue`). Without it
            only items that many people rated are named.
        random_state: A seed, for experiments: the result is marked NOT PRIVATE.

    Once fitted, `release` is what may be shared and `certificate` what it promises. `DPSR.paper(...)` is the paper's
    own pipeline.

    >>> from dpsr import DPSR, Ratings
    >>> ratings = Ratings.from_arrays(
    ...     users=["ann", "ann", "ann", "bob", "bob", "bob", "cleo", "cleo", "cleo", "cleo"],
    ...     items=[1, 2, 3, 1, 2, 4, 1, 2, 3, 4],
    ...     values=[5, 3, 4, 4, 3, 1, 4, 2, 5, 1],
    ...     scale="1:5:1",
    ... )
    >>> model = DPSR(epsilon=1.0).fit(ratings)
    >>> print(model.certificate)
    private: epsilon = 1 per rating's value
    >>> model.predict(["ann", "bob"], [4, 3]).shape
    (2,)
    >>> model.recommend("ann", n=1).items
    [4]

    Whole people are protected like this; each person's list is then made from their own ratings, for them alone:

    >>> model = DPSR(epsilon=1.0, unit="user", delta=1e-6, items=[1, 2, 3, 4]).fit(ratings)
    >>> model.personalise(ratings).recommend("ann", n=1).items
    [4]
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        unit: str = "value",
        delta: float | None = None,
        items: Ids | Catalogue | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.unit = unit
        self.delta = delta
        self.items = items
        self.random_state = random_state

    @staticmethod
    def paper(epsilon: float = 1.0, **settings: Any) -> PaperDPSR:
        """The paper's own three stages, repaired so that they keep their promise.

        Args:
            epsilon: The privacy budget, as for `DPSR`; the value of every single rating is protected.
            **settings: Those of `PaperDPSR`, among them `as_published=True` for the stages as printed, NOT PRIVATE.

        Returns:
            An estimator with the methods of `DPSR`, not fitted yet.
        """
        return PaperDPSR(epsilon, **settings)

    @staticmethod
    def plan(
        mask: Mask, scale: Scale, epsilons: Sequence[float], components: Components | None = None
    ) -> list[Forecast]:
        """The accuracy to expect at each epsilon, before anything is spent: reads the mask and no values.

        Args:
            mask: Who rated what: `ratings.mask`.
            scale: The declared scale: `ratings.scale`.
            epsilons: The budgets to compare.
            components: Shares of the variance of ratings, where the curator knows better than what is typical.

        Returns:
            One forecast for each epsilon. Its `share` is the expected RMSE over that of one constant for all ratings,
            `without_noise` the same if privacy were free.
        """
        if not isinstance(mask, Mask):
            raise ParameterError(f"a plan reads who rated what, found {type(mask).__name__}. Pass ratings.mask.")
        parts = components or shown_components(mask)
        return [forecast(mask, scale, epsilon, parts) for epsilon in epsilons]

    charged_as = "default"

    def checked(self, ratings: object) -> RawRatings | RawInteractions:
        """Ratings, or interactions at a unit that can protect them."""
        if not isinstance(ratings, RawInteractions):
            return checked_ratings(ratings)
        check_likes(self.unit, self.epsilon, self.delta)
        return ratings

    def fit_ratings(self, ratings: RawRatings | RawInteractions, *, charge: ChargeReference | None = None) -> Self:
        """Spend the budget on rows in memory; `charge` is the entry of a ledger that paid."""
        contents = self.fit_table(raw_table(ratings), charge=charge)
        if isinstance(contents, ItemRelease | LikesRelease):
            self.release_ = contents
            return self
        table = cast(MemoryTable, contents.table)
        noisy = None if contents.noisy is None else NoisyRatings(*(table[column] for column in contents.noisy))
        self.release_ = Release(
            contents.model, table[RELEASED], contents.certificate, contents.method, contents.settings, noisy
        )
        return self

    def fit_table(
        self,
        ratings: RawTable | InteractionTable,
        journal: Journal | None = None,
        *,
        charge: ChargeReference | None = None,
        recipe: Recipe | None = None,
    ) -> Contents | ItemRelease | LikesRelease:
        """Spend the budget on a table, wherever it is kept; the private ratings become a column of it.

        With a `journal`, answers that were given before are taken from it and not asked again. `charge` is the entry of
        a ledger that paid. A `recipe` other than the default one is for ablations.
        """
        self.check()
        if isinstance(ratings, InteractionTable):
            check_likes(self.unit, self.epsilon, self.delta)
            return self._fit_likes(ratings, journal, charge)
        if self.unit != "value":
            return self._fit_people(ratings, journal, charge)
        compile_once(_use_every_kernel, sweep)
        vault = Vault(ratings, self.epsilon, noise=self._noise(), journal=journal, charge=charge)
        with one_blas_thread():
            model, self.allocation_ = learn_value(vault, self.epsilon, recipe or Recipe())
        noisy = (NOISY, WEIGHT) if self.allocation_.asks_ratings else None
        settings = self._public_settings()
        return Contents(model, vault.table, vault.certificate(), "default", settings, RELEASED, noisy=noisy)

    def check(self) -> None:
        """Refuse settings that do not go together, before anything is spent."""
        check_epsilon(self.epsilon)
        check_unit(self.unit, self.epsilon, self.delta, self.items is not None)
        if self.items is not None:
            declared_items(self.items)

    def _fit_people(self, ratings: RawTable, journal: Journal | None, charge: ChargeReference | None) -> ItemRelease:
        assert self.delta is not None
        compile_once(DPSR(10.0, unit=self.unit, delta=1e-3, random_state=0).fit_table, cells)
        declared, noise = declared_items(self.items), self._noise()
        asked: dict[str, Any] = {"noise": noise, "declared": declared, "journal": journal, "charge": charge}
        with one_blas_thread():
            if self.unit == "user":
                vault = PeopleVault(ratings, self.epsilon, self.delta, **asked)
                side, index = learn_people(vault)
            else:
                vault = RatingVault(ratings, self.epsilon, self.delta, **asked)
                side, index = learn_ratings(vault)
        settings = self._public_settings()
        return ItemRelease(side, index, vault.certificate(), "people", settings).with_people()

    def _fit_likes(
        self, likes: InteractionTable, journal: Journal | None, charge: ChargeReference | None
    ) -> LikesRelease:
        assert self.delta is not None
        kind = PeopleLikesVault if self.unit == "user" else SingleLikesVault
        asked: dict[str, Any] = {"noise": self._noise(), "declared": declared_items(self.items)}
        with one_blas_thread():
            vault = kind(likes.table, self.epsilon, self.delta, **asked, journal=journal, charge=charge)
            side, index = learn_likes(vault)
        settings = self._public_settings()
        return LikesRelease(side, index, vault.certificate(), "likes", settings).with_people()


def compile_once(fit: Any, last: ModuleType) -> None:
    """Compile what `fit`, a pipeline with a seed, needs on made-up ratings, unless this machine has it in its cache.

    `last` has kernels of the stage that is compiled last.
    """
    if last.__name__ in _compiled:
        return
    _compiled.add(last.__name__)
    if say_compiling(last):
        with listening(lambda stage: None):  # its own stages are nobody's business
            fit(RawTable.of(made_up_ratings()))


def compiled_elsewhere(last: ModuleType) -> None:
    """Another process compiles that stage: `compile_once` leaves it alone."""
    _compiled.add(last.__name__)


def made_up_ratings() -> Ratings:
    """Just enough for every kernel to be used."""
    return realistic(0, n_users=40, n_items=30, n_ratings=400)


def say_compiling(module: ModuleType) -> bool:
    """Say that the first use of this module compiles, unless this machine has it in its cache; whether it was said."""
    found = in_cache(module)
    if not found:
        announce(COMPILING if any(map(is_kept, kernels_of(module))) else COMPILING_AGAIN)
    return not found


def _use_every_kernel(ratings: RawTable) -> None:
    """A fit of made-up ratings that looks for all there could be."""

    def allocate_to_all(*facts: Any) -> Allocation:
        found = allocate(*facts)
        assert found.division is not None
        return replace(found, division=replace(found.division, pooled=GRID // 32))

    recipe = Recipe(allocate=allocate_to_all, learn_taste=partial(learn_mask_taste, least=1e-6))
    DPSR(10.0, random_state=0).fit_table(ratings, recipe=recipe)


def build(
    method: str,
    epsilon: float,
    *,
    unit: str = "value",
    delta: float | None = None,
    items: Catalogue | None = None,
) -> DPSR | PaperDPSR:
    """The pipeline a command names: `default`, `paper` or `as-published`.

    A catalogue is a declaration where people or ratings are protected; at the unit `value` it only holds titles.
    """
    if method == "default":
        return DPSR(epsilon, unit=unit, delta=delta, items=None if unit == "value" else items)
    return DPSR.paper(epsilon, as_published=method == "as-published")
