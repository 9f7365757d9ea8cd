"""One release of each kind, in folders, and each behind a server."""

import pytest
from live_server import running
from served_site import Site

from dpsr import DPSR, Interactions
from dpsr.data import realistic


@pytest.fixture(scope="package")
def ratings():
    return realistic(0, n_users=120, n_items=60, n_ratings=2_400)


@pytest.fixture(scope="package")
def folders(ratings, tmp_path_factory):
    place = tmp_path_factory.mktemp("served")
    value = DPSR(epsilon=1.0).fit(ratings).save(place / "value")
    people = DPSR(epsilon=5.0, unit="user", delta=1e-5, items=list(range(60))).fit(ratings).save(place / "people")
    done = Interactions.from_arrays(
        [f"u{k}" for k in range(120) for _ in range(6)], [f"i{(k + 7 * j) % 40}" for k in range(120) for j in range(6)]
    )
    likes = DPSR(epsilon=12.0, unit="user", delta=1e-5, items=[f"i{k}" for k in range(40)]).fit(done)
    return {"value": value, "people": people, "likes": likes.save(place / "likes")}


@pytest.fixture(scope="package")
def value(folders):
    site = Site(folders["value"])
    with running(site.make):
        yield site


@pytest.fixture(scope="package")
def people(folders):
    site = Site(folders["people"])
    with running(site.make):
        yield site


@pytest.fixture(scope="package")
def likes(folders):
    site = Site(folders["likes"])
    with running(site.make):
        yield site
