"""Methods that misbehave, for tests of the benchmark: named on its command line as `strange_methods:failing`."""

import multiprocessing
import os
import signal
import tempfile
import time
from math import inf
from pathlib import Path
from types import SimpleNamespace

import numpy as np


def diary_of(pid):
    """Where the methods of a benchmark run by process `pid` note their fits: workers know no more of their parent."""
    return Path(tempfile.gettempdir()) / f"strange-diary-{pid}"


def held(pid):
    """Exists while a benchmark run by process `pid` is to get stuck in its third fit."""
    return diary_of(pid).with_suffix(".held")


class Level:
    """Predicts one level for everyone and notes in a file that it was fitted to the real table."""

    name, private = "level", True

    def __init__(self, epsilon=None, delta=1e-5, seed=0):
        self.epsilon = epsilon
        self.protection = SimpleNamespace(
            unit="rating value", epsilon=inf if epsilon is None else epsilon, delta=0.0, public="", note=""
        )

    def fit(self, ratings):
        self.mean, self.n_items = float(ratings.values.mean()), ratings.mask.n_items
        if ratings.mask.n_users != 40:  # 40 users: the warm-up
            with diary_of(multiprocessing.parent_process().pid).open("a") as file:
                file.write(f"{type(self).__name__} {self.epsilon}\n")
        return self

    def predict(self, users, items):
        return np.full(len(users), self.mean)

    def scores(self, user):
        return np.arange(self.n_items, dtype=float)


def level(epsilon, delta, seed):
    return Level(epsilon)


class Stuck(Level):
    def fit(self, ratings):
        super().fit(ratings)
        pid = multiprocessing.parent_process().pid
        if held(pid).exists() and len(diary_of(pid).read_text().splitlines()) > 2:
            time.sleep(600)
        return self


def stuck(epsilon, delta, seed):
    return Stuck(epsilon)


def failing(epsilon, delta, seed):
    raise ArithmeticError("the sum\n  does not converge")


class Hanging(Level):
    def fit(self, ratings):
        time.sleep(600)


def hanging(epsilon, delta, seed):
    return Hanging(epsilon)


hanging.private = False


class Dying(Level):
    def fit(self, ratings):
        os.kill(os.getpid(), signal.SIGKILL)


def dying(epsilon, delta, seed):
    return Dying(epsilon)


dying.private = False
