"""Each person's own raw ratings meet the released item side, for that person alone (joint differential privacy)."""

from dpsr.release.personalise.personalised import Personalised

__all__ = ["Personalised"]
