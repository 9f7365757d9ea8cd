"""What tests of several rooms share: a real PostgreSQL server, and databases of either kind."""

import pytest
from postgres_server import started

pytest_plugins = ["lanes"]


@pytest.fixture(scope="session")
def postgres():
    """A real PostgreSQL server of our own, or a reason to skip; in CI a failure."""
    with started() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    """A new database of either kind."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    return request.getfixturevalue("postgres").new_database()
