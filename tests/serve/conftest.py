"""One release of each kind, in folders, and each behind a server."""

import pytest
from live_server import running
from served_site import Site

from dpsr import DPSR
from dpsr.data import realistic


@pytest.fixture(scope="package")
def ratings():
    return realistic(0, n_users=120, n_items=60, n_ratings=2_400)


@pytest.fixture(scope="package")
def folders(ratings, tmp_path_factory):
    place = tmp_path_factory.mktemp("served")
    value = DPSR(epsilon=1.0).fit(ratings).save(place / "value")
    people = DPSR(epsilon=5.0, unit="user", delta=1e-5, items=list(range(60))).fit(ratings).save(place / "people")
    return {"value": value, "people": people}


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
