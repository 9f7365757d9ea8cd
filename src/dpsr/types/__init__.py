"""The values that pass between rooms. `types.raw`, the secret, is imported by its full name only."""

from dpsr.types.census import Census
from dpsr.types.certificate import Certificate, Part
from dpsr.types.mask import Mask
from dpsr.types.model import Affinity, Model
from dpsr.types.private import PrivateRatings
from dpsr.types.scale import Scale

__all__ = ["Affinity", "Census", "Certificate", "Mask", "Model", "Part", "PrivateRatings", "Scale"]
