"""Release folders for tests of what reads them: sound ones, and ways to change them as a careful forger would."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq

from dpsr import DPSR
from dpsr.certify import Certificate
from dpsr.certify.folder import write_manifest
from dpsr.pipeline.account import Account
from dpsr.pipeline.publish import publish
from dpsr.privacy.ledger.ledger import Ledger
from dpsr.release import verify


def charged(root, ratings, *, epsilon=1.0, name="r", signer=None, estimator=None, budget="9"):
    """A release that was charged to `root/ledger.db`; the ledger is made if it is not there."""
    address = str(root / "ledger.db")
    if not (root / "ledger.db").exists():
        Ledger.create(address, "films", budget)
    account = Account.open(address, None, epsilon)
    return publish(ratings, estimator or DPSR(epsilon), root / name, account=account, signer=signer).folder


def copied(folder, to):
    return shutil.copytree(folder, to, symlinks=True)


def rewrite(folder, name, change):
    """Edit a JSON file in place, or put a list around it, and reseal the folder; what verify says then."""
    record = json.loads((folder / name).read_text("utf-8"))
    made = change(record)
    whole = made if isinstance(made, list) and made[:1] == [record] else record
    (folder / name).write_text(json.dumps(whole, separators=(",", ":")), "utf-8")
    return resealed(folder)


def restated(change):
    """A change of a certificate after which all that it states is computed anew, so that it fits itself."""

    def forge(record):
        change(record)
        record.update(Certificate.from_record(record).to_record())

    return forge


def without(name):
    """A certificate without one question, and without its price."""
    return restated(lambda record: record.update(parts=[part for part in record["parts"] if part["name"] != name]))


def resealed(folder):
    write_manifest(folder)
    return verify(folder)


def change_column(folder, name, column, change):
    """Replace a column of a table and reseal the folder; what verify says then."""
    table = pq.read_table(folder / name)
    values = change(table[column].combine_chunks())
    place = table.column_names.index(column)
    pq.write_table(
        table.set_column(place, column, values if isinstance(values, pa.Array) else pa.array(values)), folder / name
    )
    return resealed(folder)


def change_table(folder, name, change, **options):
    """Replace a table and reseal the folder; what verify says then."""
    pq.write_table(change(pq.read_table(folder / name)), folder / name, **options)
    return resealed(folder)
