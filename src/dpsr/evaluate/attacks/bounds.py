"""What epsilon allows: the most any attacker can reach against a method that keeps its promise.

An attacker guesses which of two values a rating has; TPR and FPR are how often the first is called when it is and when
it is not. (epsilon, delta)-DP says TPR <= e^epsilon FPR + delta and the same of the complements, hence

    advantage = max (TPR - FPR)  <=  (e^epsilon - 1 + 2 delta) / (e^epsilon + 1)        (tanh(epsilon / 2) at delta = 0)
    TPR at a given FPR           <=  min( e^epsilon FPR + delta,  1 - e^-epsilon (1 - FPR - delta) ).

With k values and prior probabilities pi the posterior odds of a value are at most e^epsilon its prior odds, so the
share of right guesses is at most e^epsilon p / (1 + (e^epsilon - 1) p), p the largest pi; for a uniform prior this is
e^epsilon / (e^epsilon + k - 1), which k-ary randomised response attains (Alvim et al. 2011).
"""

from __future__ import annotations

from math import exp, expm1, inf, tanh


def most_advantage(epsilon: float, delta: float = 0.0) -> float:
    """The largest TPR - FPR.

    >>> round(most_advantage(1.0), 4), most_advantage(float("inf"))
    (0.4621, 1.0)
    """
    if epsilon == inf:
        return 1.0
    return min(1.0, tanh(epsilon / 2) + 2 * delta / (exp(epsilon) + 1))


def most_true_positives(epsilon: float, false_positives: float, delta: float = 0.0) -> float:
    """The largest TPR at a given FPR.

    >>> round(most_true_positives(1.0, 0.01), 4)
    0.0272
    """
    if epsilon > 500:
        return 1.0
    first = exp(epsilon) * false_positives + delta
    second = 1 - exp(-epsilon) * (1 - false_positives - delta)
    return min(1.0, first, second)


def most_right(epsilon: float, prior: float) -> float:
    """The largest share of right guesses among k values whose likeliest has the given prior probability.

    >>> round(most_right(1.0, 0.2), 4)  # five values, all alike: e / (e + 4)
    0.4046
    """
    if epsilon > 500:
        return 1.0
    return exp(epsilon) * prior / (1 + expm1(epsilon) * prior)
