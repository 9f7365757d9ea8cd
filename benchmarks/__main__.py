"""Ratios within one run, compared with those accepted last.

python -m benchmarks                      every section
python -m benchmarks neighbours stage3    some of them
python -m benchmarks --quick              one million ratings only
python -m benchmarks --accept             and store the ratios as the ones to compare with
python -m benchmarks --list
"""

from __future__ import annotations

import argparse

import numba

from benchmarks import sections, stored
from benchmarks.registry import SECTIONS, Ratio


def main() -> None:
    """Run, print, compare, and store when asked."""
    options = arguments()
    if options.list:
        print("\n".join(f"{one.name:12} {one.title}" for one in SECTIONS.values()))
        return
    accepted, measured = stored.load(), []
    for name in options.sections or sections.NAMES:
        print(f"\n{SECTIONS[name].title}; {numba.get_num_threads()} threads, synthetic data", flush=True)
        for ratio in SECTIONS[name].run(options.quick):
            measured.append(ratio)
            print(line(ratio), flush=True)
    worse = [text for ratio in measured if (text := stored.verdict(ratio, accepted))]
    print("\n" + "\n".join(worse or ["No ratio lost more than a fifth against benchmarks/ratios.json."]))
    if options.accept:
        stored.accept(measured)
        print("Stored.")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ratios within one run.")
    parser.add_argument("sections", nargs="*", choices=[[], *sections.NAMES], metavar="section", help="which (all)")
    parser.add_argument("--quick", action="store_true", help="one million ratings only, fewer repeats")
    parser.add_argument("--accept", action="store_true", help="store the ratios as the ones to compare with")
    parser.add_argument("--list", action="store_true", help="print the sections and stop")
    return parser.parse_args()


def line(ratio: Ratio) -> str:
    """One line of the table."""
    value = "" if ratio.value is None else f"{ratio.value:.2f}x"
    target = "" if ratio.target is None else f" (target {ratio.target:g}x)"
    return f"  {ratio.name:44}{value:>9}{target:16} {ratio.detail}"


if __name__ == "__main__":
    main()
