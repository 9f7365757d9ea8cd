"""The values that pass between rooms; but for raw rows, the secret, which are in `engine.raw`."""

from dpsr.types.catalogue import Catalogue
from dpsr.types.mask import Census, Mask
from dpsr.types.model import Affinity, Model, PersonalModel
from dpsr.types.personal import NoisyRatings, OpensOwnRows, OwnRows, PersonalPrior
from dpsr.types.private import PrivateRatings
from dpsr.types.scale import Scale

__all__ = [
    "Affinity",
    "Catalogue",
    "Census",
    "Mask",
    "Model",
    "NoisyRatings",
    "OpensOwnRows",
    "OwnRows",
    "PersonalModel",
    "PersonalPrior",
    "PrivateRatings",
    "Scale",
]
