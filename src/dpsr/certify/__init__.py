"""What anyone needs to check a promise: certificate, exact prices, odds, schema. No numerical library is imported."""

from dpsr.certify.certificate import Certificate
from dpsr.certify.parts import Part

__all__ = ["Certificate", "Part"]
