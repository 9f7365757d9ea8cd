"""The default fit against implicit's ALS on real rating sets: `python -m benchmarks.real_fit DATA [--epsilons E,..]`.

Whole sets in the folder DATA (Parquet), 16 factors and 15 iterations for implicit, the same number of threads, in turns
within one run. Their masks have structure, so that designs are wide and a taste over the mask is looked for: fits take
longer than those of made-up ratings (`fit.py`). Seeded: NOT PRIVATE.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.paper import als_of
from benchmarks.timing import in_turns
from dpsr import DPSR
from dpsr.evaluate.sets import sets_in_folder


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one line for every set and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with real sets (Parquet)")
    parser.add_argument("--epsilons", default="1,2,3,10", help="separated by commas")
    parser.add_argument("--rounds", type=int, default=4, help="how often each side is timed; the fastest counts")
    options = parser.parse_args(arguments)
    epsilons = [float(one) for one in options.epsilons.split(",")]
    print("| set | ε | dpsr, s | implicit, s | times implicit |\n|---|---|---|---|---|")
    for one in sets_in_folder(options.data):
        ratings = one.read()
        mask = ratings.mask
        matrix = csr_matrix((ratings.values.astype(np.float32), (mask.users, mask.items)), shape=mask.shape)
        sides = {f"{e:g}": lambda e=e, r=ratings: DPSR(e, random_state=0).fit(r) for e in epsilons}
        seconds = in_turns(sides | {"implicit": als_of(matrix)}, rounds=options.rounds)
        other = seconds["implicit"].wall
        for e in epsilons:
            ours = seconds[f"{e:g}"].wall
            print(f"| {one.name} | {e:g} | {ours:.2f} | {other:.2f} | {ours / other:.2f} |", flush=True)


if __name__ == "__main__":
    main()
