"""A Spark session that does not encrypt never sees a noise key: not a small one, and not after a claim to encrypt."""

import logging

import numpy as np
import pytest
from spark_cases import column, needs_spark, on_spark, session_of, small

from dpsr import DPSR
from dpsr.engine import BlockResult
from dpsr.engine.spark.secrecy import check_encrypts, missing_settings, quiet_spark
from dpsr.errors import PrivacyError
from dpsr.pipeline.account import Account
from dpsr.pipeline.out_of_core import table_on_spark
from dpsr.pipeline.publish import publish
from dpsr.privacy.ledger.ledger import Ledger
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import Vault

pytestmark = needs_spark


@pytest.fixture(scope="module")
def session():
    with session_of("local[2]", **{"spark.io.encryption.enabled": "false"}) as session:  # the default, said aloud
        yield session


def marking():
    """A task that draws nothing; made here, so that it travels by itself."""
    return lambda block: BlockResult({"mark": np.zeros(len(block.items))})


def test_every_secret_pass_is_refused_however_small_its_function(session):
    raw = on_spark(session, small())
    with pytest.raises(
        PrivacyError, match=r"noise key in the clear.*Nothing was drawn.*spark\.io\.encryption\.enabled=true"
    ):
        raw.table.run(marking(), writes=["mark"], secret=True)
    with pytest.raises(KeyError, match="mark"):
        column(raw.table, "mark")
    raw.table.run(marking(), writes=["mark"])
    assert len(column(raw.table, "mark")) == raw.table.census.n_ratings


def test_a_session_that_only_claims_to_encrypt_is_refused(session):
    """As after builder.config(...).getOrCreate() with a context that runs: the setting comes too late and looks set."""
    claims = session.newSession()
    claims._jsparkSession.sessionState().conf().setConfString("spark.io.encryption.enabled", "true")
    assert claims.conf.get("spark.io.encryption.enabled") == "true"
    with pytest.raises(PrivacyError, match="Nothing was drawn"):
        on_spark(claims, small()).table.run(marking(), writes=["mark"], secret=True)


def test_no_question_is_asked_and_nothing_is_charged_there(session, tmp_path):
    ledger = Ledger.create(str(tmp_path / "l.db"), "films", "5")
    raw = on_spark(session, small())
    with pytest.raises(PrivacyError, match="Nothing was drawn"):
        Vault(raw, 1.0, noise=NoiseSource.system())
    with pytest.raises(PrivacyError, match="Nothing was drawn"):
        publish(raw, DPSR(1.0), tmp_path / "r", account=Account.open(str(tmp_path / "l.db"), None, 1.0))
    assert ledger.budget().charges == 0
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["l.db"]


def test_a_file_is_not_even_read_there(session, tmp_path):
    with (
        pytest.raises(PrivacyError, match="let dpsr start one"),
        table_on_spark(tmp_path / "no.csv", scale=small().scale),
    ):
        raise AssertionError("unreachable")


class Context:
    """What is asked of a context: where it runs, and the settings it was started with."""

    def __init__(self, master, *on):
        self.master, self.on = master, dict.fromkeys(on, "true")

    def getConf(self):  # noqa: N802 (Spark's name)
        return self.on


DISK, AUTH, CRYPTO, TLS = (
    "spark.io.encryption.enabled", "spark.authenticate", "spark.network.crypto.enabled", "spark.ssl.rpc.enabled",
)  # fmt: skip


@pytest.mark.parametrize(
    ("context", "missing"),
    [
        (Context("local[*]"), [DISK]),
        (Context("local", DISK), []),
        (Context("local[4,2]", DISK), []),
        (Context("local-cluster[2,1,512]", DISK), [AUTH, CRYPTO]),
        (Context("spark://host:7077", DISK), [AUTH, CRYPTO]),
        (Context("yarn", DISK, CRYPTO), [AUTH]),
        (Context("yarn", DISK, AUTH), [CRYPTO]),
        (Context("yarn", DISK, AUTH, CRYPTO), []),
        (Context("k8s://host", DISK, TLS), []),
        (Context("k8s://host", TLS), [DISK]),
        (Context("k8s://host"), [DISK, AUTH, CRYPTO]),
    ],
)
def test_what_a_session_needs_depends_on_whether_anything_crosses_a_network(context, missing):
    assert missing_settings(context) == missing
    if missing:
        with pytest.raises(PrivacyError, match=r"=true and |=true, or let"):
            check_encrypts(context)


@pytest.mark.parametrize(("stop", "said"), [(KeyboardInterrupt, []), (ConnectionError, ["while sending command"])])
def test_py4j_logs_no_traceback_of_an_interrupt_and_all_else(caplog, stop, said):
    """Ctrl-C while Spark was at work showed thirty lines before the sentence."""
    with quiet_spark():
        with quiet_spark():  # as a pass is within a session
            pass
        try:
            raise stop
        except stop:
            logging.exception("while sending command")  # on the root logger, as Py4J does
    assert [record.message for record in caplog.records] == said
    assert not logging.getLogger().filters
