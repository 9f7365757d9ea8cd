"""The front door: `DPSR.paper(...)`."""

from __future__ import annotations

from typing import Any

from dpsr.pipeline.paper import PaperDPSR


class DPSR:
    """Differentially private sparse reconstruction."""

    @staticmethod
    def paper(epsilon: float = 1.0, **settings: Any) -> PaperDPSR:
        """The paper's three stages; see `PaperDPSR` for the settings."""
        return PaperDPSR(epsilon, **settings)
