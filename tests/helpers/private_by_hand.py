"""Private ratings from dense arrays, with a receipt written by hand: the stages never look at how noise was drawn."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsr.certify import Certificate
from dpsr.certify.unproved import DeclaredPart
from dpsr.types import Mask, PrivateRatings, Scale


def make_private(
    noisy: npt.NDArray[np.float64], mask: npt.NDArray[np.bool_], *, low: float = 1.0, high: float = 5.0
) -> PrivateRatings:
    """Private ratings from a dense matrix of noisy values and a dense mask, with a receipt written by hand."""
    m, n = mask.shape
    indptr = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int64)
    places = Mask(pa.array(range(m)), pa.array(range(n)), indptr, np.nonzero(mask)[1].astype(np.int32))
    receipt = Certificate(
        nominal=1.0,
        parts=(DeclaredPart("ratings"),),
        public={},
        randomness="declared",
        private=False,
        id="0" * 32,
        reasons=("made up for a test",),
    )
    return PrivateRatings(places, noisy[mask].astype(np.float64), Scale(low, high), receipt)
