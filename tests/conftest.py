"""What tests of several rooms share: a real PostgreSQL server, databases of either kind, a real browser."""

import os
import shutil
import tempfile
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # workers share the cores; implicit warns, and warnings are errors
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # a thread of a kernel that waits for the other one sleeps

import pytest
from chromium import ARGUMENTS, EXECUTABLE
from hypothesis import HealthCheck, settings

pytest_plugins = ["lanes"]

MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)  # thousands of writes are forced to disk: nobody waits for it

settings.register_profile(
    "repeatable", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")  # the same examples in every run, however busy the machine


@pytest.fixture(scope="session")
def postgres():
    """A real PostgreSQL server of our own, or a reason to skip; in CI a failure."""
    from postgres_server import started

    with started() as server:
        yield server


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def lasting_address(request, tmp_path_factory):
    """A database of either kind for all tests of a module: for what refuses to change."""
    if request.param == "sqlite":
        return str(tmp_path_factory.mktemp("lasting") / "ledger.db")
    return request.getfixturevalue("postgres").new_database()


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    """A new database of either kind."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    return request.getfixturevalue("postgres").new_database()


@pytest.fixture(scope="session")
def spark_ends():
    """The session of Spark that modules share ends with the tests."""
    from spark_cases import end_lasting

    yield
    end_lasting()


@pytest.fixture(scope="module")
def lasting_spark(spark_ends):
    """A session of Spark that other modules use as well."""
    from spark_cases import lasting_session

    return lasting_session()


@pytest.fixture(scope="session")
def chromium():
    """A headless Chromium; missing, the test is skipped, and fails where CI promises one."""
    if not Path(EXECUTABLE).exists():
        if os.environ.get("CI"):
            pytest.fail(f"CI needs Chromium at {EXECUTABLE}")
        pytest.skip(f"no Chromium at {EXECUTABLE}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=EXECUTABLE, args=ARGUMENTS)
        yield browser
        browser.close()
