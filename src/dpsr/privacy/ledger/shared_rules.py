"""What both databases check in the same words: which columns an entry of each kind has."""

from __future__ import annotations

TABLE = "dpsr_events"

APPEND_ONLY = "the ledger is append-only"
OUT_OF_ORDER = "an entry of the ledger has the number after the last one, and format 2"
NO_CHARGE = "a release in the ledger has a charge of its own, made before it for the same data set and method"
WRONG_TIME = "an entry of the ledger says when it was written: check the clock"

PORTABLE = {
    "dpsr_known_kind": "kind IN ('budget', 'charge', 'release')",
    "dpsr_known_format": "format IN (1, 2)",
    "dpsr_known_unit": "unit IS NULL OR unit IN ('value', 'rating', 'user')",
    "dpsr_numbers_count": "number >= 1",
    "dpsr_budget_comes_first": "(kind = 'budget') = (number = 1)",
    "dpsr_budget_has_a_unit": "(kind = 'budget' AND format = 2) = (unit IS NOT NULL)",
    "dpsr_charge_has_an_id": "(kind = 'budget') = (charge IS NULL)",
    "dpsr_release_has_a_certificate": "(kind = 'release') = (certificate IS NOT NULL)",
    "dpsr_release_has_a_manifest": "(kind = 'release' AND format = 2) = (manifest IS NOT NULL)",
    "dpsr_only_charges_have_fingerprints": "fingerprint IS NULL OR (kind = 'charge' AND format = 2)",
    "dpsr_nothing_private_is_free": "kind = 'release' OR epsilon <> '0'",
}
