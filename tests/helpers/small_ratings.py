"""A small file of ratings, and the options every release of it needs."""

import numpy as np


def write_csv(path, *, n=300, levels=(1, 6)):
    rng = np.random.default_rng(0)
    cells = rng.choice(30 * 20, n, replace=False)
    rows = [f"u{c // 20},i{c % 20},{rng.integers(*levels)}" for c in cells]
    path.write_text("\n".join(["userId,movieId,rating", *rows]) + "\n")
    return path


def options(out, *, epsilon="0.1", scale="1:5:1"):
    return ["--scale", scale, "--epsilon", epsilon, "--out", out, "--yes"]
