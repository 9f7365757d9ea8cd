"""The values that pass between rooms; but for raw rows, the secret, which are in `engine.raw`."""

from dpsr.types.catalogue import Catalogue
from dpsr.types.coordinates import Census, Mask, Scale
from dpsr.types.model import Affinity, Model, PersonalModel
from dpsr.types.personal import NoisyRatings, OpensOwnRows, OwnRows, PersonalPrior
from dpsr.types.private import PrivateRatings

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
