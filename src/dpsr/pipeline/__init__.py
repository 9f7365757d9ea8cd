"""The only room that knows the order of the stages."""

from dpsr.pipeline.dpsr import DPSR
from dpsr.pipeline.paper import PaperDPSR

__all__ = ["DPSR", "PaperDPSR"]
