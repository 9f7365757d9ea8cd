"""The exact prices that the documents quote: the paper's Stage 1, the repair, and where a delta would help."""

from __future__ import annotations

import numpy as np

from dpsr import Scale
from dpsr.privacy.channels import AsPublished, calibrated_laplace, gaussian_classical
from dpsr.privacy.channels.additive import analytic_sigma
from dpsr.privacy.channels.published import data_set_loss, epsilon_with_public_centre, worst_data_set

STARS, ALPHA = Scale(1, 5), 0.3


def gaussian_is_better(weights: list[float], epsilon: float, delta: float) -> bool:
    """Whether (epsilon, delta) Gaussian noise on sums would have less variance than pure epsilon Laplace noise.

    One rating moves one sum of each group, by its weight: sensitivity sum(w) in L1 and sqrt(sum(w^2)) in L2. With the
    smallest Gaussian deviation (Balle and Wang) the variances are (L2 sigma(epsilon, delta))^2 and 2 (L1 / epsilon)^2.
    """
    w = np.asarray(weights)
    return bool(analytic_sigma(epsilon, delta) ** 2 * (w @ w) < 2 * (w.sum() / epsilon) ** 2)


def main() -> None:
    """Print them."""
    print("nominal   centre 3   centre 3.5   worst case   worst family N = 10   N = 10,000")
    for epsilon in (0.1, 0.5, 1.0, 5.0, 10.0):
        public = [epsilon_with_public_centre(STARS, epsilon, ALPHA, centre) for centre in (3.0, 3.5)]
        family = [data_set_loss(STARS, epsilon, ALPHA, *worst_data_set(STARS, epsilon, ALPHA, n)) for n in (10, 10_000)]
        row = [*public, AsPublished(STARS, epsilon, ALPHA).epsilon, *family]
        print(f"{epsilon:7g}" + "".join(f"{value:12.4f}" for value in row))
    print(f"alpha of the repair at epsilon = 0.1: {calibrated_laplace(STARS, 0.1, ALPHA).settings['alpha']:.4f}")
    print(
        f"true delta of the classical Gaussian at epsilon = 10: {gaussian_classical(STARS, 10.0, 1e-5).delta(10.0):.3g}"
    )
    grid = np.geomspace(1e-4, 20, 400)
    for delta in (1e-3, 1e-4, 1e-5, 1e-6):
        highest = max(e for e in grid if gaussian_is_better([0.5, 0.5], e, delta))
        print(f"delta = {delta:g}: Gaussian noise on sums would be smaller only below epsilon = {highest:.2g}")


if __name__ == "__main__":
    main()
