"""Algorithm 1 of the paper, lines 10 to 37 (Stages 2 and 3), word for word on dense matrices.

Plain loops and LAPACK's full SVD; slow on purpose. Where the paper leaves room the reading of DESIGN section 5 holds:
neighbours are compared by rint(|s| 2^31), ties go to the lower index, zeros are never neighbours; a column whose
values spread over less than 2^-30 of the scale's width has no similarity to anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]


@dataclass
class Oracle:
    """One run: noisy values (anything where the mask is false), the mask, and the paper's letters."""

    noisy: Floats
    mask: Booleans
    low: float = 1.0
    high: float = 5.0
    K: int = 15
    beta: float = 0.65
    d: int = 8
    lam: float = 0.7
    n_iter: int = 50
    T: int = 10
    gaps: list[float] = field(default_factory=list)
    """(sigma_d - sigma_{d+1}) / sigma_1 at each projection: where this is tiny the projection is not well defined."""

    def run(self) -> Floats:
        return self.complete(self.denoise())

    def similarities(self) -> Floats:
        """Line 12: Equation (10) for every pair of items."""
        n = self.mask.shape[1]
        centred = np.zeros(self.mask.shape)
        norms = np.zeros(n)
        for j in range(n):
            raters = self.mask[:, j]
            ratings = self.noisy[raters, j]
            if ratings.size and ratings.max() - ratings.min() > 2.0**-30 * (self.high - self.low):
                centred[raters, j] = ratings - ratings.mean()
                norms[j] = np.sqrt(np.sum(centred[raters, j] ** 2))
        S = np.zeros((n, n))
        for j in range(n):
            for k in range(n):
                if j != k and norms[j] > 0 and norms[k] > 0:
                    both = self.mask[:, j] & self.mask[:, k]
                    S[j, k] = np.sum(centred[both, j] * centred[both, k]) / (norms[j] * norms[k])
        return S

    def neighbours(self, s: Floats, j: int) -> list[int]:
        """Line 15: the top-K items by |s_jk|."""
        quanta = np.rint(np.abs(s) * 2.0**31)
        order = sorted((k for k in range(len(s)) if k != j and quanta[k] > 0), key=lambda k: (-quanta[k], k))
        return order[: self.K]

    def denoise(self) -> Floats:
        """Lines 10 to 22; unobserved cells hold NaN."""
        first = np.where(self.mask, self.noisy, np.nan)
        S = self.similarities()  # 12
        second = first.copy()  # 13
        for j in range(self.mask.shape[1]):  # 14
            N_j = self.neighbours(S[j], j)  # 15
            for i in np.flatnonzero(self.mask[:, j]):  # 16
                N_ij = [k for k in N_j if self.mask[i, k]]  # 17
                if N_ij:  # 18
                    above = sum(abs(S[j, k]) * first[i, k] for k in N_ij)
                    cf = above / sum(abs(S[j, k]) for k in N_ij)  # 19
                    blend = self.beta * first[i, j] + (1 - self.beta) * cf  # 20
                    second[i, j] = min(max(blend, self.low), self.high)  # 21
        return second

    def project(self, R: Floats) -> Floats:
        """Lines 25 and 26, and 32 and 33."""
        U, s, Vt = np.linalg.svd(R, full_matrices=False)
        if self.d < len(s):
            self.gaps.append(float((s[self.d - 1] - s[self.d]) / s[0]) if s[0] > 0 else 1.0)
        return (U[:, : self.d] * s[: self.d]) @ Vt[: self.d]

    def complete(self, second: Floats) -> Floats:
        """Lines 23 to 37."""
        filled = np.where(self.mask, second, second[self.mask].mean())  # 24
        R = self.project(filled)  # 25, 26
        cells = list(zip(*np.nonzero(self.mask), strict=True))
        for t in range(self.n_iter):  # 27
            for i, j in cells:  # 29
                R[i, j] = self.lam * R[i, j] + (1 - self.lam) * second[i, j]  # 30
            if (t + 1) % self.T == 0:  # 33
                R = self.project(R)  # 34, 35
        return np.clip(R, self.low, self.high)  # 36, 37
