"""Names of data sets: one spelling each. A data set under two names would have two budgets."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsr.errors import LedgerError
from dpsr.privacy.ledger.ledger import Ledger
from dpsr.privacy.ledger.names import find, is_name, label

COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


def test_two_unicode_spellings_of_one_name_are_one_data_set(address):
    ledger = Ledger.create(address, DECOMPOSED, "1")
    assert ledger.budget().dataset == COMPOSED
    with pytest.raises(LedgerError, match="set once"):
        Ledger.create(address, COMPOSED, "1")
    paid = ledger.charge(COMPOSED, "0.5", method="default", charge_id="a" * 32)
    assert paid.dataset == COMPOSED
    ledger.charge(DECOMPOSED, "0.5", method="default")
    assert ledger.budget(DECOMPOSED) == ledger.budget(COMPOSED)
    assert ledger.budget().left_epsilon == 0
    assert len(ledger.history(DECOMPOSED)) == len(ledger.history(COMPOSED)) == 3
    assert ledger.was_charged(DECOMPOSED, "a" * 32)


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", " films", "films ", "\tfilms", "a\nb", "x" * 121, "\x1b[31m", "two  spaces"),
        *("films\u200b", "films\u200d", "fi\u00adlms", "films\u2060", "\ufefffilms", "\u202efilms", "films\u00a0two"),
        *("films\u034f", "films\ufe0f", "films\u3164", "films\uffa0", "films\u115f", "films\u2800", "films\U000e0100"),
        *("films\u3000two", "films\u2003two", "\ud800"),
    ],
    ids=ascii,
)
def test_a_name_is_one_short_line_of_characters_that_can_be_seen(tmp_path, name):
    with pytest.raises(LedgerError, match=r"printable characters that can be seen.*found '") as refused:
        Ledger.create(str(tmp_path / "l.db"), name, "1")
    assert str(refused.value).isascii()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name",
    ["Films", "FILMS", "\uff46\uff49\uff4c\uff4d\uff53", "\ufb01lms", "f\u0456lms", "f\u03b9lm\u0455"],
    ids=ascii,
)
def test_a_new_name_that_can_be_taken_for_an_existing_one_is_refused(address, name):
    ledger = Ledger.create(address, "films", "1")
    with pytest.raises(LedgerError, match=r"there is a data set 'films'.*two budgets.*looks different"):
        Ledger.create(address, name, "1")
    with pytest.raises(LedgerError, match="no data set"):
        ledger.budget(name)
    Ledger.create(address, "films 2026", "1")


@given(st.text(max_size=130))
def test_a_name_that_is_taken_is_in_the_one_spelling_of_all_its_spellings(name):
    try:
        taken = label(name)
    except LedgerError:
        assert not is_name(name)
        return
    assert is_name(taken)
    for form in ("NFC", "NFD"):
        assert label(unicodedata.normalize(form, name)) == taken == find(unicodedata.normalize(form, name), [taken])
