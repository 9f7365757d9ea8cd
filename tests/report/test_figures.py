"""Plots as pictures beside their data."""

import csv
from dataclasses import replace
from io import StringIO
from xml.etree import ElementTree

import numpy as np
import pytest

NAMES = ("distribution", "frontier", "shape")


def figures(contents):
    from dpsr.report.figures import figures as drawn  # and matplotlib, which whoever only collects tests does not need

    return drawn(contents)


@pytest.fixture(scope="module")
def files(release):
    return figures(release.contents)


def test_every_plot_is_there_as_a_vector_a_picture_and_a_table(files):
    assert set(files) == {f"{name}.{kind}" for name in NAMES for kind in ("csv", "png", "svg")}
    for name in NAMES:
        assert files[f"{name}.png"].startswith(b"\x89PNG")
        assert ElementTree.fromstring(files[f"{name}.svg"]).tag.endswith("svg")


def test_the_tables_hold_the_numbers(files, release):
    rows = {name: list(csv.DictReader(StringIO(files[f"{name}.csv"].decode()))) for name in NAMES}
    assert sum(int(row["released ratings"]) for row in rows["distribution"]) == release.mask.n_ratings
    users = [row for row in rows["shape"] if row["side"] == "users"]
    assert sum(int(row["count"]) for row in users) == release.mask.n_users
    (here,) = [row for row in rows["frontier"] if row["this release"] == "1"]
    assert float(here["epsilon"]) == release.certificate.nominal
    parts = [float(here[part]) for part in ("unknowable", "too few ratings", "privacy")]
    assert np.sqrt(sum(parts)) == pytest.approx(float(here["rmse share"]))


def test_the_same_release_gives_the_same_pictures(files, release):
    assert figures(release.contents) == files


def test_pictures_of_what_is_not_private_look_different(files, release, not_private):
    same = figures(replace(release, certificate=not_private.certificate, method=not_private.method).contents)
    assert set(same) == {name for name in files if not name.startswith("frontier")}
    assert same["shape.csv"] == files["shape.csv"]
    assert same["shape.svg"] != files["shape.svg"]
