"""A folder with ratings, and studios in it."""

import pytest
from studio_process import studio_in

from dpsr.data import realistic
from dpsr.privacy.ledger.ledger import Ledger


def write_ratings(path):
    realistic(0, n_users=60, n_items=40, n_ratings=900).to_frame().to_csv(path, index=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("studio")
    write_ratings(place / "ratings.csv")
    (place / "items.csv").write_text("item,title\n" + "\n".join(f"{k},Film {k}" for k in range(60)))
    return place


@pytest.fixture(scope="module")
def studio(folder):
    with studio_in(folder, "ratings.csv") as found:
        yield found


@pytest.fixture
def ledger(folder, request):
    """A budget of epsilon = 1 of its own for a test, under the test's name."""
    name = f"{request.node.name[:40]}.db"
    Ledger.create(str(folder / name), "films", "1", "0", unit="value")
    return name
