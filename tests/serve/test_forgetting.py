"""Somebody's own ratings are used for their answer and forgotten: not logged, not counted, not kept."""

import gc
import json
import logging
import threading
from time import monotonic, sleep

import pytest
from live_server import ask, post

from dpsr.serve import answers
from dpsr.serve.metrics import Metrics

SPELT = [ord(letter) - 1 for letter in "dbobsz.8e2g14"]
"""The canary, letter by letter, so that no object of this module holds it."""


def canary():
    return "".join(chr(code) for code in SPELT)


def requests():
    bird = canary()
    return [
        {"people": [{"ratings": [{"item": bird, "rating": 3}, {"item": 3, "rating": 4}], "items": [bird]}]},
        {"people": [{"ratings": [{"item": bird, "rating": 3.25}]}]},
        {"people": [{"ratings": [{"item": bird, "rating": 3}], bird: 1}]},
        {"people": [{"ratings": [{"item": bird, "rating": bird}]}]},
    ]


def holders():
    """The kinds of live objects that hold the canary, as text or as bytes."""
    gc.unfreeze()  # what was there before the tests may hold it now
    gc.collect()
    things = gc.get_objects()
    gc.freeze()  # again, for the tests to come
    parts = (things[start : start + 10_000] for start in range(0, len(things), 10_000))
    return [type(thing) for part in parts if _hold(part) for thing in part if _hold([thing])]


def _hold(things):
    """Whether any of them does: there are millions, and many are looked at as fast as one."""
    return any(_holds(one) for one in _texts(things))


def _texts(things):
    """What they hold that is text; Python keeps no list of dicts and tuples that hold nothing but text."""
    for one in gc.get_referents(*things):
        if type(one) in (str, bytes, bytearray):
            yield one
        elif type(one) in (dict, tuple) and not gc.is_tracked(one):
            yield from _texts([one])


def _holds(one):
    """Most texts are told apart by the canary's tail, which may stand here; spelling it each time takes long."""
    if type(one) is str:
        return "-7d1f" in one and canary() in one
    return type(one) in (bytes, bytearray) and b"-7d1f" in one and canary().encode() in one


def test_the_tail_is_the_canary_s():
    assert "-7d1f" in canary()


def in_text(metrics):
    return json.dumps([repr(one) for one in vars(metrics).values()]) + metrics.text()


def send_all(port):
    for body in requests():
        post(port, "/v1/fold-in", body)
    bird = canary()
    ask(port, "POST", f"/v1/{bird}?{bird}", json.dumps(requests()[0]).encode(), x_note=bird)
    ask(port, "GET", f"/{bird}")


@pytest.mark.parametrize("kind", ["value", "people"])
def test_no_canary_is_in_logs_or_in_the_memory_of_the_metrics(kind, request, caplog, capfd):
    site = request.getfixturevalue(kind)
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, logger="dpsr"):
        send_all(site.port)
    logged = "".join(record.getMessage() + str(record.args) for record in caplog.records)
    captured = capfd.readouterr()
    assert "/v1/fold-in" in logged, "something was logged, or this would prove nothing"
    assert canary() not in logged + captured.out + captured.err + in_text(site.metrics)


@pytest.mark.parametrize("kind", ["value", "people"])
def test_no_live_object_holds_a_canary_once_the_answer_is_out(kind, request):
    site = request.getfixturevalue(kind)
    send_all(site.port)
    post(site.port, "/v1/fold-in", {"people": [{"ratings": []}]})
    until = monotonic() + 120  # connections close in their own time
    while (found := holders()) and monotonic() < until:
        sleep(0.1)
    assert found == []


def test_a_server_that_kept_requests_would_be_noticed(people, monkeypatch):
    """The test above would pass if it looked at nothing; this one would not."""
    kept = []
    real = answers._one_person
    monkeypatch.setattr(answers, "_one_person", lambda *given: (kept.append(given), real(*given))[1])
    send_all(people.port)
    assert holders()
    kept.clear()


def test_metrics_that_took_a_stranger_for_a_label_would_be_noticed():
    metrics = Metrics()
    metrics.observe(canary(), 200, 0.1)
    assert canary() in in_text(metrics)


def test_no_thread_is_left_with_a_request(people):
    send_all(people.port)
    assert not any(canary() in repr(thread) for thread in threading.enumerate())
