"""What attackers reach against each method's output, beside what epsilon allows.

Attacks read raw ratings to judge guesses: their numbers are **not private**.
"""

from dpsr.evaluate.attacks.bounds import most_advantage, most_right, most_true_positives
from dpsr.evaluate.attacks.run import BEST_GUESS, MEAN_LEAK

__all__ = ["BEST_GUESS", "MEAN_LEAK", "most_advantage", "most_right", "most_true_positives"]
