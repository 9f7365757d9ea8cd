"""The server under load, beside implicit's model behind the very same server; and under strange requests.

    python -m benchmarks.serving                  requests a second and latencies, ours and implicit's
    python -m benchmarks.serving --fuzz 10000     so many generated requests: 2xx or a clear 4xx, no traceback
    python -m benchmarks.serving --start          seconds until `dpsr serve` and `dpsr studio` say where they listen

The server is one process and the clients are another, on the same two cores. Both sides answer through the same
routes, forms, guard and connection; what differs is who computes the list. implicit's is not private. Processor time
is the server's own for one request: unlike the rest of the line it does not depend on who else uses the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import psutil

from benchmarks.serving_sides import SIDES, made_up, prepare
from benchmarks.strange_requests import batter

CLIENTS, SECONDS, RATED = 8, 6.0, 20
QUESTIONS = {
    "fold-in, 1 person": ("/v1/fold-in", 1),
    "fold-in, 50 people": ("/v1/fold-in", 50),
    "recommend, 1 user": ("/v1/recommend", 1),
    "recommend, 50 users": ("/v1/recommend", 50),
}


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving")
    parser.add_argument("--fuzz", type=int, metavar="N", help="send N generated requests instead")
    parser.add_argument("--start", action="store_true", help="time the start instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        prepare(folder, small=options.fuzz is not None or options.start)
        if options.start:
            start(folder)
        elif options.fuzz is not None:
            fuzz(folder, options.fuzz)
        else:
            load(folder)


def start(folder: Path) -> None:
    """Seconds from the command to the line that says where it listens, the best of three."""
    commands = {f"serve {name}": ["serve", str(folder / name), "--port", "0"] for name in ("value", "people")}
    for name, command in (commands | {"studio": ["studio"]}).items():
        took = []
        for _ in range(3):
            began = perf_counter()
            process = _begun([sys.executable, "-m", "dpsr", *command])
            took.append(perf_counter() - began)
            process.terminate()
            process.wait()
        print(f"{name:14} {min(took):.2f} s until it listens (best of {len(took)}; worst {max(took):.2f} s)")


def fuzz(folder: Path, count: int) -> None:
    """Generated requests over real connections, half to each kind of release."""
    for name in ("value", "people"):
        process = _command(folder / name)
        tally, said = batter(_port(process.first), count // 2), ""
        process.terminate()
        assert process.stderr is not None
        said = process.stderr.read()
        assert "Traceback" not in said, said
        answers = ", ".join(f"{status}: {n:,}" for status, n in sorted(tally.items()))
        print(f"{name:8} {sum(tally.values()):,} generated requests, no traceback, answers by status: {answers}")


def load(folder: Path) -> None:
    """Requests a second and latencies of every side and question."""
    ratings = made_up()
    users, items = ratings.mask.shape
    print(f"{CLIENTS} clients, {SECONDS:g} s each; {users:,} users, {items:,} items (synthetic)")
    print(f"{'':22}{'':24}{'requests/s':>11}{'lists/s':>9}{'p50':>9}{'p95':>9}{'p99':>9}{'processor':>11}  (ms)")
    for side in SIDES:
        with _side(side, folder) as (port, process):
            for question, (path, size) in QUESTIONS.items():
                if side == "dpsr, people" and path == "/v1/recommend":
                    continue
                busy = sum(process.cpu_times()[:2])
                took = asyncio.run(_hammer(port, path, _bodies(path, size, ratings)))
                p50, p95, p99 = 1e3 * np.percentile(took, [50, 95, 99])
                rate, busy = len(took) / SECONDS, 1e3 * (sum(process.cpu_times()[:2]) - busy) / len(took)
                print(
                    f"{side:22}{question:24}{rate:11,.0f}{rate * size:9,.0f}{p50:9.1f}{p95:9.1f}{p99:9.1f}{busy:11.2f}",
                    flush=True,
                )


def _bodies(path: str, size: int, ratings: Any, count: int = 200) -> list[bytes]:
    rng = np.random.default_rng(0)
    mask, found = ratings.mask, []
    for _ in range(count):
        if path == "/v1/recommend":
            record: Any = {"users": rng.choice(mask.user_ids.to_numpy(), size).tolist()}
        else:
            people = [rng.choice(mask.item_ids.to_numpy(), RATED, replace=False).tolist() for _ in range(size)]
            record = {
                "people": [
                    {"ratings": [{"item": i, "rating": int(rng.integers(1, 6))} for i in items]} for items in people
                ]
            }
        found.append(json.dumps(record).encode())
    return found


async def _hammer(port: int, path: str, bodies: list[bytes]) -> list[float]:
    """Seconds of every answer within the time, from clients that ask again at once."""
    took: list[float] = []
    supply, until = cycle(bodies), perf_counter() + SECONDS

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (began := perf_counter()) < until:
            body = next(supply)
            head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
            writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200"), answer
            length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            took.append(perf_counter() - began)
        writer.close()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return took


class _Started(subprocess.Popen[str]):
    """A server in a process of its own, and the first line it said."""

    first = ""


def _command(folder: Path) -> _Started:
    return _begun([sys.executable, "-m", "dpsr", "serve", str(folder), "--port", "0"])


def _begun(command: list[str]) -> _Started:
    process = _Started(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while "http://" not in process.first and process.poll() is None:  # libraries may have something to say before
        process.first = process.stderr.readline()
    return process


def _port(line: str) -> int:
    return int(line.split("http://127.0.0.1:")[1].split()[0].split("/")[0])


@contextmanager
def _side(side: str, folder: Path) -> Iterator[tuple[int, psutil.Process]]:
    process = _begun([sys.executable, "-m", "benchmarks.serving_sides", side, str(folder)])
    yield _port(process.first), psutil.Process(process.pid)
    process.terminate()
    process.wait()


if __name__ == "__main__":
    main()
