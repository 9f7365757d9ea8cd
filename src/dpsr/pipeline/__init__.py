"""The only room that knows the order of the stages."""

from dpsr.pipeline.paper import PaperDPSR
from dpsr.pipeline.value import DPSR

__all__ = ["DPSR", "PaperDPSR"]
