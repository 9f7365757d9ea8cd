"""The table on PostgreSQL (13 or newer), and what PostgreSQL itself refuses.

A team's roles may SELECT and INSERT and nothing else. So that no row of theirs can refund a charge, forge a release or
make the history unreadable for everybody, what the reader would refuse is refused here already: sums of fractions are
exact (`numeric`), digests are computed again (`sha256`), and only whoever owns the table sets budgets. The function
runs with the rights of whoever inserts. It names the table with its schema and searches nothing but PostgreSQL's own
functions, so that nobody can put a table or a function of the same name in front.
"""

from __future__ import annotations

from typing import Any

from dpsr.certify.amounts import LONGEST as LONGEST_AMOUNT
from dpsr.privacy.ledger.event import APPEND_ONLY, CHAINED, NO_CHARGE, OUT_OF_ORDER, PORTABLE, TABLE, WRONG_TIME
from dpsr.privacy.ledger.rules import CLOCK, HEX, LONGEST
from dpsr.privacy.ledger.session import Session


def _amount(name: str) -> str:
    form = f"{name} ~ '^(0|[1-9][0-9]*(/([2-9]|[1-9][0-9]+))?)$'"
    return f"{form} AND char_length({name}) <= {LONGEST_AMOUNT}"


def _hex(name: str, digits: int) -> str:
    free = "format = 1 OR " if name == "charge" else ""
    return f"{name} IS NULL OR {free}{name} ~ '^[0-9a-f]{{{digits}}}$'"


def _line(name: str, most: int) -> str:
    return f"format = 1 OR (char_length({name}) <= {most} AND {name} !~ '[\\u0001-\\u001f\\u007f-\\u009f]')"


CHECKS = {
    **PORTABLE,
    "dpsr_epsilon_is_an_amount": _amount("epsilon"),
    "dpsr_delta_is_an_amount": _amount("delta"),
    "dpsr_at_is_a_time": "at ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[+]00:00$'",
    "dpsr_dataset_is_named": "char_length(dataset) >= 1",
    **{f"dpsr_{name}_is_a_line": _line(name, most) for name, most in LONGEST.items()},
    **{f"dpsr_{name}_is_hexadecimal": _hex(name, digits) for name, digits in HEX.items()},
}

_KEYS = {"dpsr_events_pkey": "PRIMARY KEY (dataset, number)", "dpsr_one_release_per_charge": "UNIQUE (charge, kind)"}
_TABLE = f"""CREATE TABLE {TABLE} (
    format integer NOT NULL, dataset varchar(120) NOT NULL, number integer NOT NULL, kind varchar(10) NOT NULL,
    unit varchar(10), at varchar(32) NOT NULL, who varchar(120) NOT NULL, epsilon text NOT NULL, delta text NOT NULL,
    method text NOT NULL, note text NOT NULL, charge varchar(32), certificate varchar(64), manifest varchar(64),
    fingerprint varchar(64), digest varchar(64) NOT NULL,
    {", ".join(f"CONSTRAINT {name} {what}" for name, what in _KEYS.items())}
)"""

_BELOW = "split_part({0}, '/', 2)"
_TOP, _BOTTOM = "split_part({0}, '/', 1)::numeric", f"coalesce(nullif({_BELOW}, ''), '1')::numeric"


def _add(name: str) -> str:
    """`name` of the row `entry` added to the fraction n_name / d_name, in lowest terms."""
    top, bottom = _TOP.format(f"entry.{name}"), _BOTTOM.format(f"entry.{name}")
    n, d = f"n_{name}", f"d_{name}"
    return f"""{n} := {n} * {bottom} + {top} * {d};
      {d} := {d} * {bottom};
      common := gcd({n}, {d});
      {n} := div({n}, common);
      {d} := div({d}, common);"""


def _exceeds(name: str, n: str, d: str, limit: str) -> str:
    return f"{n} * {_BOTTOM.format(f'{limit}.{name}')} > {_TOP.format(f'{limit}.{name}')} * {d}"


def _new_exceeds(name: str, limit: str) -> str:
    return _exceeds(name, _TOP.format(f"NEW.{name}"), _BOTTOM.format(f"NEW.{name}"), limit)


_FIELDS = ", ".join(["coalesce(previous.digest, '')", *(f"NEW.{name}::text" for name in CHAINED)])
_LAWFUL = f"""
DECLARE
  book text := format('%I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME);
  previous record; first record; paid record; entry record;
  n_epsilon numeric := 0; d_epsilon numeric := 1; n_delta numeric := 0; d_delta numeric := 1; common numeric;
  latest text; chained text;
BEGIN
  EXECUTE format('SELECT digest FROM %s WHERE dataset = $1 AND number = $2', book)
    INTO previous USING NEW.dataset, NEW.number - 1;
  IF NEW.format <> 2 OR (NEW.number > 1 AND previous.digest IS NULL) THEN
    RAISE EXCEPTION '{OUT_OF_ORDER}';
  END IF;
  EXECUTE format('SELECT max(at COLLATE "C") FROM %s WHERE dataset = $1 AND format = 2 AND number < $2', book)
    INTO latest USING NEW.dataset, NEW.number;
  IF NEW.at::timestamptz NOT BETWEEN now() - interval '{CLOCK.days} day' AND now() + interval '{CLOCK.days} day'
     OR NEW.at::timestamptz < latest::timestamptz - interval '{CLOCK.days} day' THEN
    RAISE EXCEPTION '{WRONG_TIME}';
  END IF;
  IF gcd({_TOP.format("NEW.epsilon")}, {_BOTTOM.format("NEW.epsilon")}) <> 1
     OR gcd({_TOP.format("NEW.delta")}, {_BOTTOM.format("NEW.delta")}) <> 1 THEN
    RAISE EXCEPTION 'an amount in the ledger is a fraction in lowest terms';
  END IF;
  EXECUTE format('SELECT epsilon, delta FROM %s WHERE dataset = $1 AND number = 1', book) INTO first USING NEW.dataset;
  IF NEW.kind = 'budget' THEN
    IF {_TOP.format("NEW.delta")} >= {_BOTTOM.format("NEW.delta")} THEN
      RAISE EXCEPTION 'a budget in the ledger has a delta below 1';
    END IF;
    IF NOT pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE') THEN
      RAISE EXCEPTION 'only the owner of the ledger sets budgets';
    END IF;
  ELSIF NEW.kind = 'charge' THEN
    FOR entry IN EXECUTE format('SELECT epsilon, delta FROM %s WHERE dataset = $1 AND kind = ''charge'' '
                                'AND number <= $2', book) USING NEW.dataset, NEW.number LOOP
      {_add("epsilon")}
      {_add("delta")}
    END LOOP;
    IF {_exceeds("epsilon", "n_epsilon", "d_epsilon", "first")}
       OR {_exceeds("delta", "n_delta", "d_delta", "first")} THEN
      RAISE EXCEPTION 'a charge to the ledger is at most what its budget has left';
    END IF;
  ELSE
    EXECUTE format('SELECT epsilon, delta FROM %s WHERE dataset = $1 AND kind = ''charge'' AND charge = $2 '
                   'AND number < $3 AND method = $4', book)
      INTO paid USING NEW.dataset, NEW.charge, NEW.number, NEW.method;
    IF paid.epsilon IS NULL THEN
      RAISE EXCEPTION '{NO_CHARGE}';
    END IF;
    IF {_new_exceeds("epsilon", "paid")}
       OR {_new_exceeds("delta", "paid")} THEN
      RAISE EXCEPTION 'a release in the ledger costs at most what was charged for it';
    END IF;
  END IF;
  SELECT string_agg(coalesce(octet_length(convert_to(field, 'UTF8')) || ':' || field, '-') || ',', '' ORDER BY place)
    INTO chained FROM unnest(ARRAY[{_FIELDS}]) WITH ORDINALITY AS fields(field, place);
  IF NEW.digest <> encode(sha256(convert_to(chained, 'UTF8')), 'hex') THEN
    RAISE EXCEPTION 'an entry of the ledger has the digest of itself and of the digest before';
  END IF;
  RETURN NULL;
END """
_APPEND_ONLY = f" BEGIN RAISE EXCEPTION '{APPEND_ONLY}'; END "
_FUNCTIONS = {"dpsr_append_only": _APPEND_ONLY, "dpsr_lawful": _LAWFUL}
_TRIGGERS = {
    "dpsr_no_change": "BEFORE UPDATE OR DELETE ON {0} FOR EACH ROW EXECUTE FUNCTION dpsr_append_only()",
    "dpsr_no_truncate": "BEFORE TRUNCATE ON {0} FOR EACH STATEMENT EXECUTE FUNCTION dpsr_append_only()",
    "dpsr_lawful_entry": "AFTER INSERT ON {0} FOR EACH ROW EXECUTE FUNCTION dpsr_lawful()",
}
_GUARDS = (
    *(
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp "
        f"AS $dpsr${body}$dpsr$"
        for name, body in _FUNCTIONS.items()
    ),
    *(f"ALTER TABLE {TABLE} ADD CONSTRAINT {name} CHECK ({check})" for name, check in CHECKS.items()),
    *(f"CREATE TRIGGER {name} {when.format(TABLE)}" for name, when in _TRIGGERS.items()),
)
CREATE = (_TABLE, *_GUARDS)


def columns(session: Session) -> list[str]:
    """The names of all columns; none if there is no such table, or a view in its place."""
    return [
        str(row["attname"])
        for row in session.rows(
            "SELECT attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid "
            f"WHERE attrelid = to_regclass('{TABLE}') AND relkind = 'r' AND attnum > 0 AND NOT attisdropped"
        )
    ]


def rebuild(session: Session, old: bool) -> list[str]:
    """Columns and constraints are added where the table is: rows and rights stay as they are."""
    keys = _held(session, KEY)
    later = ("unit varchar(10)", "manifest varchar(64)", "fingerprint varchar(64)") if old else ()
    marked = (
        f"ALTER TABLE {TABLE} ADD COLUMN format integer NOT NULL DEFAULT 1",
        f"ALTER TABLE {TABLE} ALTER COLUMN format DROP DEFAULT",
    )
    return [
        *(f"ALTER TABLE {TABLE} DROP CONSTRAINT {_quoted(name)}" for name in _held(session, CHECK)),
        *(f"ALTER TABLE {TABLE} ADD CONSTRAINT {name} {_KEYS[name]}" for name in _KEYS if name not in keys),
        *(f"DROP TRIGGER IF EXISTS {name} ON {TABLE}" for name in _TRIGGERS),
        *(marked if old else ()),
        *(f"ALTER TABLE {TABLE} ADD COLUMN {column}" for column in later),
        *_GUARDS,
    ]


def missing(session: Session) -> list[str]:
    """Constraints, triggers and functions that are not there, not in force, or not ours."""
    triggers = session.rows(
        "SELECT tgname, prosrc FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid "
        f"WHERE tgrelid = to_regclass('{TABLE}') AND NOT tgisinternal AND tgenabled IN ('O', 'A')"
    )
    bodies = {row["tgname"]: row["prosrc"] for row in triggers}
    ours: dict[str, Any] = {name: _body(when) for name, when in _TRIGGERS.items()}
    wrong = [name for name in {**ours, **bodies} if bodies.get(name) != ours.get(name)]
    rewritten = [row["rulename"] for row in session.rows(_RULES)]
    held = {*_held(session, KEY), *_held(session, CHECK)}
    return [*wrong, *rewritten, *(name for name in (*_KEYS, *CHECKS) if name not in held)]


_RULES = f"SELECT rulename FROM pg_rules WHERE tablename = '{TABLE}' AND schemaname = any (current_schemas(false))"


def _body(when: str) -> str:
    return next(body for name, body in _FUNCTIONS.items() if f"{name}()" in when)


CHECK, KEY = "c", "pu"
"""Kinds of constraints, in PostgreSQL's letters."""


def _held(session: Session, kinds: str) -> list[str]:
    return [
        str(row["conname"])
        for row in session.rows(
            f"SELECT conname FROM pg_constraint WHERE conrelid = to_regclass('{TABLE}') AND convalidated "
            "AND strpos(:kinds, contype::text) > 0 ORDER BY conname",
            kinds=kinds,
        )
    ]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
