"""Generated requests: 2xx or a clear 4xx, whatever comes; `python -m benchmarks.serving --fuzz 10000` sends more."""

import pytest
from benchmarks.strange_requests import batter


@pytest.mark.parametrize("kind", ["value", "people", "likes"])
def test_whatever_is_sent_is_answered_or_refused_in_words(kind, request, caplog):
    site = request.getfixturevalue(kind)
    tally = batter(site.port, 100)
    assert tally[200] > 5, "some of them are right"
    assert sum(tally.values()) >= 100
    assert "Traceback" not in caplog.text
    assert "unexpected" not in caplog.text
