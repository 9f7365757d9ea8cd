"""Stage 2: noisy ratings lean on the same user's ratings of similar items."""

from dpsr.denoise.blend import blend_with_neighbours
from dpsr.denoise.neighbours import Neighbours, item_neighbours

__all__ = ["Neighbours", "blend_with_neighbours", "item_neighbours"]
