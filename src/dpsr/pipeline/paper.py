"""The paper's three stages in the paper's order, Stage 1 repaired or as published."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from dpsr.certify.certificate import ChargeReference
from dpsr.engine import Block, BlockResult, MemoryTable, Table
from dpsr.engine.raw import RawRatings, RawTable
from dpsr.errors import ParameterError
from dpsr.paper.blend import blend_with_neighbours
from dpsr.paper.completion import Completion, complete_by_projections
from dpsr.paper.neighbours import item_neighbours
from dpsr.paper.tuning import CANDIDATES, Settings, tune
from dpsr.pipeline.estimator import PrivateRecommender, announce
from dpsr.privacy.channels import AsPublished, Channel, calibrated_laplace
from dpsr.privacy.vault import Vault, declared_private, privatise
from dpsr.privacy.vault.journal import Journal
from dpsr.release import Contents, Release
from dpsr.types import Model, PrivateRatings, Scale

SYMBOL, NOISY, SMOOTHED = "symbol", "noisy", "smoothed"
"""The columns of a table that the vault, Stage 1 and Stage 2 end with."""

_STAGE_ONE = ("epsilon", "alpha", "as_published")
"""Settings of what draws noise."""

COMPLETED = Completion(released="released", observed="observed")


class PaperDPSR(PrivateRecommender):
    """DPSR as the paper describes it. Build it with `DPSR.paper(...)`.

    Stage 1 adds Laplace noise calibrated by how far a rating lies from the centre (`alpha`), Stage 2 blends each noisy
    rating with the same user's ratings of similar items (`beta`, `n_neighbors`), Stage 3 completes the matrix by
    alternating projections (`rank`, `lam`, `n_iter`, a projection every `period` iterations).

    `as_published=True` runs Stage 1 exactly as printed: its certificate shows the true epsilon and refuses to call the
    result private. `tune=True` chooses `beta`, `n_neighbors`, `rank` and `lam` from the private ratings, at no cost;
    `tuned_` reports them. `random_state` is for experiments and marks the result NOT PRIVATE.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        alpha: float = 0.3,
        beta: float = 0.65,
        n_neighbors: int = 15,
        rank: int = 8,
        lam: float = 0.7,
        n_iter: int = 50,
        period: int = 10,
        as_published: bool = False,
        tune: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.alpha = alpha
        self.beta = beta
        self.n_neighbors = n_neighbors
        self.rank = rank
        self.lam = lam
        self.n_iter = n_iter
        self.period = period
        self.as_published = as_published
        self.tune = tune
        self.random_state = random_state

    charged_as = "paper"

    def fit_ratings(self, ratings: RawRatings, *, charge: ChargeReference | None = None) -> Self:
        """All three stages. Only Stage 1 sees a value. `charge` is the entry of a ledger that paid."""
        self._check()
        announce("Drawing noise for every rating")
        private = privatise(ratings, self._mechanism(ratings.scale), noise=self._noise(), charge=charge)
        return self._reconstruct(private, self._public_settings())

    def reconstruct(self, ratings: PrivateRatings | RawRatings) -> Self:
        """Stages 2 and 3 alone, for ratings that are private already; they cost nothing more.

        A plain rating table is taken at its owner's word and its certificate says so. Settings of Stage 1 were somebody
        else's, and the release does not state them.
        """
        self._check()
        private = ratings if isinstance(ratings, PrivateRatings) else declared_private(ratings)
        own = {name: value for name, value in self._public_settings().items() if name not in _STAGE_ONE}
        return self._reconstruct(private, own)

    def _reconstruct(self, private: PrivateRatings, stated: dict[str, Any]) -> Self:
        """Stages 2 and 3, for a release that has these settings and those that were tuned."""
        settings = self._settings()
        self.tuned_ = tune(private, settings, _complete) if self.tune else settings
        table = MemoryTable(private.mask, {NOISY: private.values})
        model = _stages_two_and_three(table, private.scale, self.tuned_)
        self.private_ = private
        facts = {**stated, **self.tuned_}
        self.release_ = Release(model, table[COMPLETED.released], private.certificate, self._name(), facts)
        return self

    def fit_table(
        self, ratings: RawTable, journal: Journal | None = None, *, charge: ChargeReference | None = None
    ) -> Contents:
        """Spend the budget on a table, wherever it is kept; what the stages release are columns of it.

        Under one seed the noise is that of `fit`. With a `journal`, symbols that were drawn before are not drawn again.
        `charge` is the entry of a ledger that paid.
        """
        self._check()
        self.check_fits_a_table()
        vault = Vault(ratings, self.epsilon, noise=self._noise(), journal=journal, charge=charge)
        announce("Drawing noise for every rating")
        channel = calibrated_laplace(vault.scale, self.epsilon, self.alpha)
        vault.noisy_ratings(channel, symbol=SYMBOL)
        _to_values(vault.table, channel)
        self.tuned_ = self._settings()
        model = _stages_two_and_three(vault.table, vault.scale, self.tuned_)
        facts = {**self._public_settings(), **self.tuned_}
        observed = COMPLETED.observed if self.n_iter % self.period else None
        return Contents(model, vault.table, vault.certificate(), self._name(), facts, COMPLETED.released, observed)

    @property
    def fits_no_table(self) -> bool:
        """Whether it needs all ratings in memory."""
        return self.as_published or self.tune

    def check_fits_a_table(self) -> None:
        """Refuse what only ratings in memory can have."""
        if self.as_published:
            raise ParameterError(
                "the paper's Stage 1 as published sets its noise by the exact mean of all ratings and is never "
                "private, so it runs in memory alone. Use --engine memory, or the repaired one (--method paper)."
            )
        if self.tune:
            raise ParameterError(
                "tune=True tries the stages on parts of the private ratings, in memory alone. Use --engine memory, or "
                "set beta, n_neighbors, rank and lam yourself."
            )

    def _settings(self) -> Settings:
        return {name: getattr(self, name) for name in (*CANDIDATES, "n_iter", "period")}

    def _mechanism(self, scale: Scale) -> Channel | AsPublished:
        if self.as_published:
            return AsPublished(scale, self.epsilon, self.alpha)
        return calibrated_laplace(scale, self.epsilon, self.alpha)

    def _name(self) -> str:
        return "paper, as published" if self.as_published else "paper"

    def _check(self) -> None:
        """Settings that cannot change the guarantee; those that can are checked where the noise is drawn."""
        for name in ("beta", "lam"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise ParameterError(f"{name} must lie between 0 and 1, found {value!r}.")
        for name, least in (("n_neighbors", 1), ("rank", 1), ("n_iter", 0), ("period", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise ParameterError(f"{name} must be a whole number of at least {least}, found {value!r}.")


def _to_values(table: Table, channel: Channel) -> None:
    """Symbols as the ratings they are published as."""
    outputs = channel.outputs

    def convert(block: Block) -> BlockResult:
        return BlockResult({NOISY: outputs[block.columns[SYMBOL]]})

    table.run(convert, reads=[SYMBOL], writes=[NOISY])


def _complete(private: PrivateRatings, settings: Settings) -> Model:
    """The stages on some private ratings alone."""
    return _stages_two_and_three(MemoryTable(private.mask, {NOISY: private.values}), private.scale, settings)


def _stages_two_and_three(table: Table, scale: Scale, settings: Settings) -> Model:
    """Stages 2 and 3 on the column of noisy ratings."""
    announce("Denoising by similar items")
    similar = item_neighbours(table, NOISY, scale, k=settings["n_neighbors"])
    blend_with_neighbours(table, NOISY, similar, scale, beta=settings["beta"], blended=SMOOTHED)
    table.drop(NOISY)
    cut = {name: settings[name] for name in ("rank", "lam", "n_iter", "period")}
    announce("Completing the matrix")
    model = complete_by_projections(table, SMOOTHED, scale, COMPLETED, **cut)
    if isinstance(table, MemoryTable) and settings["n_iter"] % settings["period"]:
        return replace(model, observed=table[COMPLETED.observed])
    return model
