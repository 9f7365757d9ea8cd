"""What a process of its own does in the tests of racing and killing: real charges, real folders, few imports."""

import hashlib
import json
import os
from pathlib import Path

from certificates import certificate

from dpsr.database import Database
from dpsr.errors import PrivacyError
from dpsr.privacy.ledger.ledger import Ledger
from dpsr.release.atomic import atomic_folder, sync_tree

Database.parse("postgresql://nobody@localhost/nothing").engine("rw")  # loads the driver, once for all forks
FILES = ("certificate.json", "ratings.parquet", "manifest.json")


def race(address, barrier, price, answers):
    """Wait for the others, then charge until refused; say how often it worked."""
    ledger, won = Ledger.open(address), 0
    barrier.wait()
    try:
        while True:
            ledger.charge("films", price, method="race")
            won += 1
    except PrivacyError as error:
        answers.put((won, str(error)))


def release_until_killed(address, folder, name, price, ready):
    """The order of `pipeline.publish`, over and over, with a folder of a few files."""
    ledger = Ledger.open(address)
    ready.set()
    for number in range(1_000):
        with atomic_folder(Path(folder) / f"{name}-{number}") as draft:
            charge = ledger.charge("films", price, method="kill")
            paid = certificate(charge.spendable, name=f"{name}-{number}", charge=charge.reference)
            write_folder(draft, paid)
            manifest = hashlib.sha256((draft / "manifest.json").read_bytes()).hexdigest()
            ledger.record(charge, paid, manifest=manifest)


def write_folder(draft, paid):
    draft.mkdir()
    (draft / "certificate.json").write_text(paid.to_json())
    (draft / "ratings.parquet").write_bytes(os.urandom(50_000))
    files = {name: hashlib.sha256((draft / name).read_bytes()).hexdigest() for name in FILES[:2]}
    (draft / "manifest.json").write_text(json.dumps(files))
    sync_tree(draft)
