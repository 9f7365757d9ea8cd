"""The private rating table in the shape other libraries expect.

Everything here is post-processing of a release, so a model trained on it is covered by the same certificate. Optional
libraries are imported when they are asked for, and a missing one is one sentence saying what to install.
"""

from dpsr.release.adapters.matrices import IdMap, UserItems

__all__ = ["IdMap", "UserItems"]
