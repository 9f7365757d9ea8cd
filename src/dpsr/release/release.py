"""A release: everything that leaves the building, and what can be done with it.

`Contents` is what goes into its folder, wherever the table is kept. It holds the public mask, private ratings, a model
and a certificate. There is no way back to a raw rating.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.arrays import Floats
from dpsr.certify import Certificate
from dpsr.engine import MemoryTable, Table
from dpsr.errors import ParameterError, ReleaseError
from dpsr.release.adapters import IdMap, UserItems, frames, matrices
from dpsr.release.lists.fold_in import FoldedInUser
from dpsr.release.lists.ranking import (
    RecommendationLists,
    Recommendations,
    Tabular,
    best_items,
    html_table,
    score_pairs,
)
from dpsr.release.personalise import Personalised
from dpsr.types import Catalogue, Mask, Model, NoisyRatings, OpensOwnRows, PersonalModel, Scale
from dpsr.types.coordinates import Ids, paired


@dataclass(frozen=True, eq=False)
class Contents:
    """What goes into a folder: the columns of `table` are the private ratings, and perhaps observed cells.

    `noisy` names the columns of noisy readings of the ratings and of their precision, where such were bought.
    """

    model: Model
    table: Table
    certificate: Certificate
    method: str
    settings: dict[str, Any]
    ratings: str
    observed: str | None = None
    noisy: tuple[str, str] | None = None
    titles: list[str | None] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.model, PersonalModel):
            raise ReleaseError(
                "what was made from people's own ratings goes to these people, never into a release folder. Save the "
                "release itself, and write their lists with Personalised.save."
            )


Progress = Callable[[int, int], None]
Unknown: TypeAlias = Literal["error", "average"]
ManyIds: TypeAlias = list[Any] | tuple[Any, ...] | npt.NDArray[Any] | pa.Array | pa.ChunkedArray
"""Ids of several users; a pandas or polars Series will do."""


@dataclass(frozen=True, eq=False)
class Release(Tabular):
    """A model that predicts and recommends, the private rating table, and their certificate.

    `ratings` is the table to share: one private value per rating, in the order of the mask. `settings` says how it was
    made, in public terms only. `noisy` is what the noise itself left of every rating, where single ratings were bought.
    """

    model: Model
    ratings: Floats
    certificate: Certificate
    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    noisy: NoisyRatings | None = None
    titles: list[str | None] | None = None

    def with_titles(self, catalogue: Catalogue) -> Release:
        """The same release whose lists and card name items by their titles, where the catalogue has one."""
        return replace(self, titles=catalogue.titles_of(self.mask.item_ids))

    def _titled(self, found: Recommendations) -> Recommendations:
        if self.titles is None:
            return found
        codes = self.mask.item_codes(found.items).tolist()
        return replace(found, titles=[self.titles[code] for code in codes])

    @property
    def mask(self) -> Mask:
        """Who rated what; a release in memory has it."""
        assert isinstance(self.model.mask, Mask)
        return self.model.mask

    @property
    def scale(self) -> Scale:
        return self.model.scale

    def predict(self, users: Ids, items: Ids) -> Floats:
        """Predicted ratings inside the scale; unknown users and items get the best that is known."""
        u, j = paired(users, items)
        return self.model.predict(self.mask.user_codes(u), self.mask.item_codes(j))

    @overload
    def recommend(self, user: str | int, n: int = 10, *, unknown: Unknown = "error") -> Recommendations: ...

    @overload
    def recommend(self, user: ManyIds, n: int = 10, *, unknown: Unknown = "error") -> RecommendationLists: ...

    def recommend(
        self, user: str | int | ManyIds, n: int = 10, *, unknown: Unknown = "error"
    ) -> Recommendations | RecommendationLists:
        """The `n` items that `user` has not rated and is most likely to meet and like; for an array, a table of lists.

        A user the release does not know is an error; with `unknown="average"` they get what the average user would.
        """
        from dpsr.release.lists.single import lists_of_users, require_user

        if unknown not in ("error", "average"):
            raise ParameterError(f'unknown is "error" or "average", found {unknown!r}.')
        if np.ndim(user) or isinstance(user, pa.Array | pa.ChunkedArray):
            return lists_of_users(self, user, n, unknown)
        if unknown == "error":
            require_user(self.mask, user)
        return self._list(user, n)

    def _list(self, user: object, n: int) -> Recommendations:
        """One list; of the average user if this one is not known."""
        code = int(self.mask.user_codes([user])[0])
        if code < 0:
            return self._titled(best_items(self.model, self.model.scores(-1), self.model.item_means, [], n))
        rated = self.mask.items[self.mask.indptr[code] : self.mask.indptr[code + 1]]
        scores = score_pairs(self.model, np.array([code]), np.arange(self.mask.n_items))
        return self._titled(best_items(self.model, *scores, rated, n))

    def fold_in(self, items: Ids, values: npt.ArrayLike, n: int = 10) -> Recommendations:
        """Recommendations for somebody new, from their own ratings and the released item side; nothing is stored."""
        return self._titled(self.fold_in_user(items, values).recommend(n))

    def fold_in_user(self, items: Ids, values: npt.ArrayLike) -> FoldedInUser:
        """Somebody who is not in the release: predictions and recommendations from their own ratings alone."""
        return FoldedInUser.from_ratings(self.model, items, values)

    def personalise(self, ratings: OpensOwnRows, *, block: int | None = None) -> Personalised:
        """Predictions and lists for each person from their own raw ratings and this release: for that person alone.

        `block` is how many people are served at a time; it bounds memory and changes no list.
        """
        return Personalised(self, ratings, block=block)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the release folder, whole or not at all."""
        from dpsr.release.folder.write import write_release

        return write_release(self.contents, Path(path), overwrite=overwrite)

    @property
    def contents(self) -> Contents:
        """What its folder holds."""
        observed = {} if self.model.observed is None else {"predicted": self.model.observed}
        noisy = {} if self.noisy is None else self.noisy._asdict()
        table = MemoryTable(self.mask, {"rating": self.ratings, **observed, **noisy})
        return Contents(
            self.model,
            table,
            self.certificate,
            self.method,
            self.settings,
            "rating",
            "predicted" if observed else None,
            ("values", "weights") if noisy else None,
            self.titles,
        )

    def recommend_all(
        self, path: str | Path, n: int = 10, *, overwrite: bool = False, progress: Progress | None = None
    ) -> Path:
        """Write every user's list to one file (`.parquet` or `.csv`): user, rank, item, score. Whole or not at all.

        The rows are those of `recommend`. `progress` hears how many users are done, and of how many.
        """
        from dpsr.release.lists.batch import write_lists

        return write_lists(self.model, Path(path), n, overwrite=overwrite, progress=progress, titles=self.titles)

    @property
    def ids(self) -> IdMap:
        """From ids to the rows and columns of matrices, and back."""
        return IdMap(self.mask)

    def to_arrow(self) -> pa.Table:
        """The private ratings as an Arrow table: user, item, rating and perhaps timestamp."""
        return self.mask.to_arrow(rating=self.ratings)

    def to_scipy(self) -> Any:
        """The private ratings as a `scipy.sparse.csr_array`, users x items; `ids` names its rows and columns."""
        return matrices.csr(self)

    def to_implicit(self, *, liked_from: float | None = None) -> UserItems:
        """What implicit's models are fitted on: weights, or ones from the rating `liked_from` on. With the ids."""
        return matrices.user_items(self, liked_from)

    def to_surprise(self) -> Any:
        """A `surprise.Dataset` of the private ratings, with raw ids and the declared scale."""
        return frames.surprise_dataset(self)

    def to_torch(self) -> Any:
        """A PyTorch `Dataset` of (user code, item code, private rating)."""
        frames.optional("torch", "to_torch")
        from dpsr.release.adapters.for_torch import RatingDataset

        return RatingDataset(self)

    def _repr_html_(self) -> str:
        m, n = self.mask.shape
        facts = {
            "promise": str(self.certificate),
            "exact epsilon": repr(self.certificate.epsilon),
            "method": self.method,
            "ratings": f"{self.mask.n_ratings:,}",
            "users": f"{m:,}",
            "items": f"{n:,}",
            "scale": str(self.scale),
        }
        return html_table(pa.table({"release": list(facts), "": list(facts.values())}))

    def __repr__(self) -> str:
        m, n = self.mask.shape
        return f"Release({self.method}, {self.mask.n_ratings:,} ratings, {m:,} users, {n:,} items, {self.certificate})"
