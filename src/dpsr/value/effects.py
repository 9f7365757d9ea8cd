"""What noisy sums say: item and user effects, and shared weights of public features.

    eta_uj = z_j' W x_u + z_j' Q z_j + item_j + user_u
    W, Q ~ N(0, 1/ridge of their groups),   item ~ N(0, ti),   user ~ N(0, tu)

Q are products of an item's own features but the constant, less their average over ratings; features of an item tell
more together than one by one (decision 86). With l_j = z_j' Q z_j + item_j, p the weight of a rating in its item's sum,
q that in its user's (`engine.incidence`) and g the slope of the window, the two families of sums are

    T_j = g sum_u p_uj ( l_j + user_u + z_j' W x_u ) + noise,      u over the raters of j
    T_u = g sum_j q_uj ( user_u + l_j + z_j' W x_u ) + noise,      j over what u rated

and where sums over all ratings with public signs are asked (`noisy_sums.py`), these are a third family. H maps
(W, Q, item, user) to all sums, R is the diagonal of their noise and sampling variances. The posterior mean solves
(H' R^-1 H + P) theta = H' R^-1 T by conjugate gradients; a product with H is two passes over the ratings. Variance
components follow MacKay's fixed point, t = sum dev^2 / sum (1 - p / t), p the posterior variances, the ridge of W and Q
likewise.

Noise in the sums of rows is Laplace's. From the second round on T and R are those of the normal observations that say
the same (`laplace_noise.py`), given what everything but its own answer says of a sum. Sums over all ratings are taken
for normal: noise hides little of them.

Known gap: a posterior variance takes a row's partners as independent of it, which overstates nothing on sparse masks
and is slightly optimistic on dense ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpsr.arrays import Floats
from dpsr.value.design import Design
from dpsr.value.laplace_noise import as_normal
from dpsr.value.noisy_sums import NoisySums
from dpsr.value.priors import EFFECT, OWN_PRODUCTS, cautious_ridge
from dpsr.value.side import inverse, outer_gram


@dataclass(frozen=True, eq=False)
class Effects:
    """Posterior of  z_j' W x_u + z_j' Q z_j + item_j + user_u,  in half-widths of the scale.

    `weights` are W, `products` Q, `ridge` the precisions of W's groups and of Q. Prior variances are one number a side,
    posterior variances one a row.
    """

    weights: Floats
    products: Floats
    item: Floats
    user: Floats
    ridge: Floats
    item_prior_variance: float
    user_prior_variance: float
    item_posterior_variance: Floats
    user_posterior_variance: Floats
    pooled_precision: Floats | float = 0.0
    """What sums over all ratings alone say about vec(W), a precision; zero where there are none."""

    @property
    def known(self) -> tuple[float, float]:
        """How many item and user effects the sums determine: each counts by how far its variance has fallen."""
        items = np.clip(1 - self.item_posterior_variance / self.item_prior_variance, 0, 1)
        users = np.clip(1 - self.user_posterior_variance / self.user_prior_variance, 0, 1)
        return float(items.sum()), float(users.sum())


@dataclass(frozen=True, eq=False)
class EffectObservation:
    """What each row's own sum says about its effect: a value and its variance."""

    value: Floats
    variance: Floats


_PSEUDO = 10.0
"""Pseudo-observations behind each prior variance: they decide where a side has hardly any rows."""

_CAUTION = 0.1
"""A side's own effect is believed to be a tenth of the typical until it shows; typical sides show at once."""

_COEFFICIENTS = 3.0
"""The same for the ridge of a group of W, which is believed to be less than typical until it shows
(`cautious_ridge`)."""

ROUNDS, FEW_ROUNDS, MORE_ROUNDS, _STEPS = 6, 3, 2, 40
_ROUGH, _ENOUGH, _EXACT = 1e-3, 1e-4, 1e-6
"""Rounds of the fixed point, of one that is only a start, and of one learned on; steps of a round; the relative squared
energy error at which a round stops: one that is only a start, one of several, the last."""


def learn_effects(
    design: Design,
    sums: NoisySums,
    ridge: Floats,
    variance: float,
    *,
    rounds: int = ROUNDS,
    begun: tuple[Effects, NoisySums] | None = None,
) -> tuple[Effects, NoisySums]:
    """Joint empirical-Bayes posterior of weights and effects, and the sums as normal observations.

    In fewer `rounds`, roughly, without Q and with all noise taken for normal where it is the start of sweeps over noisy
    ratings, which learn effects and their variances anew, or of what is asked next. What was `begun` on the same sums,
    read otherwise, is learned on, in fewer rounds and in full.
    """
    (m, n), t = design.census.shape, EFFECT * variance
    cautious = cautious_ridge(ridge)
    q, d = design.z.shape[1], design.x.shape[1]
    W, Q, prior = np.zeros((q, d)), np.zeros((q - 1, q - 1)), (ridge, t, t, np.full(n, t), np.full(m, t))
    effects, heard = begun or (Effects(W, Q, np.zeros(n), np.zeros(m), *prior), sums)
    problem, start = _Problem(design, heard), begun is None and rounds < ROUNDS
    for done in range(rounds):
        if not start and (done > 0 or begun):
            problem.hear(sums, effects)
        enough = _ROUGH if start else _ENOUGH if done < rounds - 1 else _EXACT
        effects = problem.solve(effects, cautious, _CAUTION * t, enough=enough, own_products=not start)
    return effects, problem.sums


def own_observations(design: Design, sums: NoisySums, effects: Effects) -> tuple[EffectObservation, EffectObservation]:
    """What each row's own sum says about its effect, the weights and the partners at their joint posterior."""
    problem, g = _Problem(design, sums), sums.gain
    of_items, of_users = problem.forward(replace(effects, item=effects.item * 0, user=effects.user * 0))
    from_users, from_items = problem.partners(effects.user, effects.item)
    others = problem.others(effects)
    items = _observation(
        sums.item_values - of_items - g * from_users, sums.item_variance + others.of_items, g * problem.item_weight
    )
    users = _observation(
        sums.user_values - of_users - g * from_items, sums.user_variance + others.of_users, g * problem.user_weight
    )
    return items, users


def _observation(residual: Floats, variance: Floats, total: Floats) -> EffectObservation:
    safe = np.where(total > 0, total, 1.0)
    return EffectObservation(np.where(total > 0, residual / safe, 0.0), np.where(total > 0, variance / safe**2, 1e12))


class Others(NamedTuple):
    """What is known beside a row's own sum.

    The variances that partners leave a sum, of items and of users, and the precisions with which their own sums and
    the prior tell an item's, or a user's, effect.
    """

    of_items: Floats
    of_users: Floats
    tell_item: Floats
    tell_user: Floats


class _Problem:
    """The linear map H of one design, and one round of the fixed point."""

    def __init__(self, design: Design, sums: NoisySums) -> None:
        self.design, self.sums = design, sums
        m, n = design.census.shape
        of_item, of_user = self.partners(
            np.column_stack([design.x, np.ones(m)]), np.column_stack([design.z, np.ones(n)])
        )
        self.x_sum, self.z_sum = of_item[:, :-1], of_user[:, :-1]
        self.item_weight, self.user_weight = of_item[:, -1], of_user[:, -1]
        self.item_square, self.user_square = self.partner_variances(np.ones(m), np.ones(n))

    def partners(self, users: Floats, items: Floats) -> tuple[Floats, Floats]:
        """Sums of the raters' values in items' sums, and of the rated items' values in users' sums, as weighted."""
        w = self.sums.weights
        return w.both(users, items, w.item_weights, w.user_weights)

    def partner_variances(self, users: Floats, items: Floats) -> tuple[Floats, Floats]:
        """The same of variances: weights count twice."""
        w = self.sums.weights
        return w.both(users, items, w.item_weights**2, w.user_weights**2)

    def forward(self, e: Effects) -> tuple[Floats, Floats]:
        """H theta: the expected item sums and user sums."""
        return self._rows(e.weights, e.item + self.design.item_products.at(e.products), e.user)

    def _rows(self, weights: Floats, level: Floats, user: Floats) -> tuple[Floats, Floats]:
        d, g = self.design, self.sums.gain
        from_users, from_items = self.partners(user, level)
        items = self.item_weight * level + from_users + np.einsum("jd,jd->j", d.z @ weights, self.x_sum)
        users = self.user_weight * user + from_items + np.einsum("ud,ud->u", self.z_sum @ weights, d.x)
        return g * items, g * users

    def _forward(self, theta: Floats) -> tuple[Floats, ...]:
        weights, level, user = self._parts(theta)
        rows, pooled = self._rows(weights, level, user), self.sums.pooled
        return rows if pooled is None else (*rows, pooled.forward(weights, level, user))

    def _back(self, items: Floats, users: Floats, together: Floats | None = None) -> Floats:
        """H' (items, users, together)."""
        d, w, a, b = self.design, self.sums.weights, self.sums.gain * items, self.sums.gain * users
        weights = d.z.T @ (self.x_sum * a[:, None]) + self.z_sum.T @ (d.x * b[:, None])
        from_users, from_items = w.both(b, a, w.user_weights, w.item_weights)
        found = weights.ravel(), self.item_weight * a + from_users, self.user_weight * b + from_items
        if self.sums.pooled is not None and together is not None:
            more = self.sums.pooled.back(together)
            found = found[0] + more[0], found[1] + more[1], found[2] + more[2]
        return np.concatenate(found)

    def _weighted(self, items: Floats, users: Floats, together: Floats | None = None) -> Floats:
        """H' R^-1 (items, users, together)."""
        s = self.sums
        if s.pooled is not None and together is not None:
            together = together / s.pooled.variance
        return self._back(items / s.item_variance, users / s.user_variance, together)

    def _parts(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        shape, n = (self.design.z.shape[1], self.design.x.shape[1]), self.design.census.n_items
        q = shape[0] * shape[1]
        return theta[:q].reshape(shape), theta[q : q + n], theta[q + n :]

    def solve(
        self, e: Effects, ridge: Floats, share: float, *, enough: float = _EXACT, own_products: bool = True
    ) -> Effects:
        """The posterior mean at the present hyper-parameters and Q, and one fixed-point step for each of those."""
        groups = self.design.weight_groups.ravel()
        item_posterior_variance, user_posterior_variance = self._posterior_variances(e)
        block = inverse(self._gram(e) + np.diag(e.ridge[groups]))
        prior = np.concatenate([
            e.ridge[groups],
            np.full(len(e.item), 1 / e.item_prior_variance),
            np.full(len(e.user), 1 / e.user_prior_variance),
        ])  # fmt: skip
        start, own = np.concatenate([e.weights.ravel(), e.item, e.user]), self.design.item_products.at(e.products)
        theta = self._conjugate_gradients(
            start, own, prior, block, np.concatenate([item_posterior_variance, user_posterior_variance]), enough
        )
        weights, item, user = self._parts(theta)
        known = 1 - e.ridge[groups] * np.diag(block)
        new_ridge = _ridge_step(weights.ravel(), known, groups, e.ridge, ridge)
        products = e.products
        if own_products:
            products, new_ridge[OWN_PRODUCTS] = self._learn_products(e, weights, user, float(ridge[OWN_PRODUCTS]))
            item = item + own - self.design.item_products.at(products)
        return Effects(
            weights,
            products,
            item,
            user,
            new_ridge,
            _variance_step(item, item_posterior_variance, e.item_prior_variance, share),
            _variance_step(user, user_posterior_variance, e.user_prior_variance, share),
            item_posterior_variance,
            user_posterior_variance,
            self._pooled_precision(e),
        )

    def _learn_products(self, e: Effects, weights: Floats, user: Floats, default: float) -> tuple[Floats, float]:
        """Q by generalised least squares from the sums of items, their own effects integrated out, and its ridge."""
        own, reach = self.design.item_products, self.sums.gain * self.item_weight
        rest = self.sums.item_values - self._rows(weights, np.zeros(len(e.item)), user)[0]
        spread, size = self._item_spread(e), e.products.size
        block = inverse(own.gram(reach**2 / spread) + e.ridge[OWN_PRODUCTS] * np.eye(size))
        Q, known = block @ own.back(reach * rest / spread).ravel(), size - e.ridge[OWN_PRODUCTS] * np.trace(block)
        return Q.reshape(e.products.shape), float((known + _COEFFICIENTS) / (Q @ Q + _COEFFICIENTS / default))

    def _pooled_precision(self, e: Effects) -> Floats | float:
        pooled = self.sums.pooled
        return 0.0 if pooled is None else pooled.precision(e.item_prior_variance, e.user_prior_variance)

    def others(self, e: Effects) -> Others:
        """What the partners leave open about every sum, and what their own sums tell of every effect."""
        s, w, g = self.sums, self.sums.weights, self.sums.gain
        left_open = self.partner_variances(e.user_posterior_variance, e.item_posterior_variance)
        of_items, of_users = g**2 * left_open[0], g**2 * left_open[1]
        through_u, through_i = w.both(
            g**2 / (s.user_variance + of_users + (g * self.user_weight) ** 2 * e.user_posterior_variance),
            g**2 / (s.item_variance + of_items + (g * self.item_weight) ** 2 * e.item_posterior_variance),
            w.user_weights**2,
            w.item_weights**2,
        )
        return Others(of_items, of_users, through_u + 1 / e.item_prior_variance, through_i + 1 / e.user_prior_variance)

    def _posterior_variances(self, e: Effects) -> tuple[Floats, Floats]:
        """Posterior variances of the effects: own sum with uncertain partners, the partners' sums, and the prior."""
        s, g, others = self.sums, self.sums.gain, self.others(e)
        return (
            1 / ((g * self.item_weight) ** 2 / (s.item_variance + others.of_items) + others.tell_item),
            1 / ((g * self.user_weight) ** 2 / (s.user_variance + others.of_users) + others.tell_user),
        )

    def hear(self, asked: NoisySums, e: Effects) -> None:
        """Take the sums as `asked` for the normal observations that say the same, given what all others say of each."""
        s, g, others, (of_items, of_users) = self.sums, self.sums.gain, self.others(e), self.forward(e)
        items = (g * self.item_weight) ** 2 / others.tell_item + others.of_items
        users = (g * self.user_weight) ** 2 / others.tell_user + others.of_users
        without_own = _without(of_items, items, s.item_values, s.item_variance)
        item = as_normal(asked.item_values, asked.item_variance, asked.item_scale, without_own, items)
        without_own = _without(of_users, users, s.user_values, s.user_variance)
        user = as_normal(asked.user_values, asked.user_variance, asked.user_scale, without_own, users)
        self.sums = replace(
            asked, item_values=item[0], item_variance=item[1], user_values=user[0], user_variance=user[1]
        )

    def _gram(self, e: Effects) -> Floats:
        """Precision of vec(W) with effects integrated out sum by sum."""
        d, s, g = self.design, self.sums, self.sums.gain
        user_spread = s.user_variance + g**2 * (
            self.user_weight**2 * e.user_prior_variance + self.user_square * e.item_prior_variance
        )
        gram = outer_gram(d.z, self.x_sum, g**2 / self._item_spread(e)) + outer_gram(
            self.z_sum, d.x, g**2 / user_spread
        )
        return gram + self._pooled_precision(e)

    def _item_spread(self, e: Effects) -> Floats:
        """The variance of every item's sum, effects included."""
        of_effects = self.item_weight**2 * e.item_prior_variance + self.item_square * e.user_prior_variance
        return np.asarray(self.sums.item_variance + self.sums.gain**2 * of_effects)

    def _conjugate_gradients(
        self, theta: Floats, own: Floats, prior: Floats, block: Floats, variances: Floats, enough: float
    ) -> Floats:
        s, q = self.sums, len(block)

        def precondition(r: Floats) -> Floats:
            return np.concatenate([block @ r[:q], variances * r[q:]])

        def apply(t: Floats) -> Floats:
            return self._weighted(*self._forward(t)) + prior * t

        values = s.item_values, s.user_values, *(() if s.pooled is None else (s.pooled.values,))
        q0 = np.concatenate([np.zeros(q), own, np.zeros(len(theta) - q - len(own))])
        target = self._weighted(*(v - f for v, f in zip(values, self._forward(q0), strict=True)))
        r = target - apply(theta)
        p = y = precondition(r)
        energy, first = float(r @ y), max(float(target @ precondition(target)), 1e-300)
        for _ in range(_STEPS):
            if energy <= enough * first:
                break
            ahead = apply(p)
            step = energy / float(p @ ahead)
            theta, r = theta + step * p, r - step * ahead
            y = precondition(r)
            energy, old = float(r @ y), energy
            p = y + energy / old * p
        return theta


def _without(expected: Floats, believed: Floats, value: Floats, variance: Floats) -> Floats:
    """What was believed, with this variance, of a number that is expected here since it was observed."""
    return expected + believed / variance * (expected - value)


def _ridge_step(w: Floats, known: Floats, groups: npt.NDArray[np.int64], ridge: Floats, default: Floats) -> Floats:
    new = ridge.copy()
    for g in range(1, len(ridge)):
        member = groups == g
        if member.any():
            new[g] = (known[member].sum() + _COEFFICIENTS) / (w[member] @ w[member] + _COEFFICIENTS / default[g])
    return new


def _variance_step(effect: Floats, posterior: Floats, prior: float, default: float) -> float:
    return float((effect @ effect + _PSEUDO * default) / (np.sum(1 - posterior / prior) + _PSEUDO))
