"""Models to compare with: **not private** when fitted on raw ratings, post-processing when fitted on noisy ones.

Constant   mean                                       the least a model must beat
Bias       mean + user + item                         ridge strengths chosen on validation data
ALS        bias + P_u . Q_j                           rank and ridge chosen on validation data
MF         P_u . Q_j                                  the paper's: d = 8, Adam, 50 epochs
ItemKNN    bias + neighbours                          shrinkage and damping chosen on validation data
SVDpp      bias + Q_j . (P_u + what u rated)          penalty and epochs chosen on validation data
"""

from dpsr.evaluate.baselines.als import ALS
from dpsr.evaluate.baselines.base import Baseline, Fitted
from dpsr.evaluate.baselines.bias import Bias, Constant
from dpsr.evaluate.baselines.factorisation import MF
from dpsr.evaluate.baselines.item_knn import ItemKNN
from dpsr.evaluate.baselines.svdpp import SVDpp

__all__ = ["ALS", "MF", "Baseline", "Bias", "Constant", "Fitted", "ItemKNN", "SVDpp"]
