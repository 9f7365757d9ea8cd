"""The server says what the library says, and never more than the release allows."""

import json

import numpy as np
import pytest
from live_server import ask, post

from dpsr import DPSR, load_release
from dpsr.errors import PrivacyError
from dpsr.serve.loaded import Served

OWN = [{"item": 3, "rating": 5}, {"item": 7, "rating": 1}, {"item": 11, "rating": 4}]
ITEMS, VALUES = [3, 7, 11], [5, 1, 4]


def test_lists_of_released_users_are_those_of_the_library_in_the_order_asked_for(value, folders):
    release = load_release(folders["value"])
    users = release.mask.user_ids[:4].to_pylist()[::-1]
    status, found = post(value.port, "/v1/recommend", {"users": users, "n": 7})
    assert status == 200
    assert [one["user"] for one in found["lists"]] == users
    for one in found["lists"]:
        items, scores = release.recommend(one["user"], 7)
        assert [row["item"] for row in one["list"]] == items
        np.testing.assert_array_equal([row["score"] for row in one["list"]], scores)


@pytest.mark.parametrize("kind", ["value", "people"])
def test_fold_in_gives_each_person_what_the_library_gives_them_alone(kind, folders, request):
    site, release = request.getfixturevalue(kind), load_release(folders[kind])
    people = [{"ratings": OWN, "items": [5, 6]}, {"ratings": OWN[:1], "n": 3}, {"ratings": []}]
    status, found = post(site.port, "/v1/fold-in", {"people": people, "n": 5})
    assert status == 200
    for answer, k, n in zip(found["people"], (3, 1, 0), (5, 3, 5), strict=True):
        items, scores = release.fold_in([str(one) for one in ITEMS[:k]], VALUES[:k], n)
        assert [row["item"] for row in answer["list"]] == items
        np.testing.assert_array_equal([row["score"] for row in answer["list"]], scores)
    own = release.predict_own if kind == "people" else lambda i, v, w: release.fold_in_user(i, v).predict(w)
    np.testing.assert_array_equal(found["people"][0]["predictions"], own(ITEMS, VALUES, [5, 6]))


def test_predictions_are_those_of_the_library(value, people, folders):
    release = load_release(folders["value"])
    user = release.mask.user_ids[0].as_py()
    _, found = post(value.port, "/v1/predict", {"users": [user], "items": [1, 2, 999_999]})
    np.testing.assert_array_equal(found["predictions"], release.predict([user] * 3, [1, 2, 999_999]))
    _, found = post(people.port, "/v1/predict", {"items": [1, 2]})
    np.testing.assert_array_equal(found["predictions"], load_release(folders["people"]).predict([0, 0], [1, 2]))


def test_ids_may_be_numbers_or_their_text(value):
    answers = [post(value.port, "/v1/recommend", {"users": [kind(1)], "n": 3})[1]["lists"] for kind in (int, str)]
    assert answers[0][0]["list"] == answers[1][0]["list"]


def test_a_release_of_people_has_no_list_for_anybody_by_name_and_says_what_to_send(people):
    for path, asked in (("/v1/recommend", {"users": [1]}), ("/v1/predict", {"users": [1], "items": [1]})):
        status, found = post(people.port, path, asked)
        assert status == 403
        assert "knows nobody" in found["error"]
        assert "/v1/fold-in" in found["error"]
    assert "/v1/recommend" not in json.loads(ask(people.port, "GET", "/openapi.json")[1])["paths"]


def test_a_release_of_what_people_did_lists_from_what_a_person_did_and_predicts_no_rating(likes, folders):
    release = load_release(folders["likes"])
    people = [{"ratings": [{"item": "i1"}, {"item": "i8"}]}, {"ratings": [{"item": "i1", "rating": 2.5}]}]
    status, found = post(likes.port, "/v1/fold-in", {"people": people, "n": 5})
    assert status == 200
    for answer, given in zip(found["people"], ((["i1", "i8"], [1, 1]), (["i1"], [2.5])), strict=True):
        assert [row["item"] for row in answer["list"]] == release.fold_in(*given, n=5).items
    _, found = post(likes.port, "/v1/predict", {"items": ["i1", "nothing"]})
    np.testing.assert_array_equal(found["predictions"], release.predict([0, 0], ["i1", "nothing"]))
    for person, words in (
        ({"ratings": [{"item": "i1", "rating": 0}]}, "a weight above 0"),
        ({"ratings": [{"item": "i1"}], "items": ["i2"]}, "predicts no ratings"),
    ):
        status, found = post(likes.port, "/v1/fold-in", {"people": [person]})
        assert status == 422
        assert words in found["error"]
    assert post(likes.port, "/v1/recommend", {"users": ["u1"]})[0] == 403
    assert json.loads(ask(likes.port, "GET", "/v1/release")[1])["scale"] is None


def test_a_rating_that_is_missing_is_asked_for_where_there_are_ratings(value):
    status, found = post(value.port, "/v1/fold-in", {"people": [{"ratings": [{"item": 3}]}]})
    assert status == 422
    assert "has none" in found["error"]


def test_a_user_the_release_does_not_know_is_a_404_unless_the_average_is_asked_for(value):
    status, found = post(value.port, "/v1/recommend", {"users": [1, "stranger"]})
    assert status == 404
    assert "users[1]" in found["error"]
    assert post(value.port, "/v1/recommend", {"users": ["stranger"], "unknown": "average"})[0] == 200


def test_a_release_that_is_not_private_is_not_served(ratings, tmp_path):
    DPSR.paper(epsilon=0.1, as_published=True, random_state=7).fit(ratings).save(tmp_path / "r")
    with pytest.raises(PrivacyError, match=r"only a private release is served.*Serve another"):
        Served(tmp_path / "r")


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"people": [{"ratings": [{"item": 1, "rating": 2.5}]}]}, 422, "scale, from 1 to 5 in steps of 1"),
        ({"people": [{"ratings": [OWN[0], OWN[0]]}]}, 422, "every item once"),
        ({"people": []}, 422, "people"),
        ({"people": [{"ratings": OWN}], "more": 1}, 422, "more"),
        ({"people": [{"ratings": OWN}] * 101}, 422, "100"),
        ({"people": [{"ratings": OWN, "n": 0}]}, 422, "at least 1"),
        ({"people": [{"ratings": [{"item": True, "rating": 3}]}]}, 422, "string or integer"),
        (b'{"people": [NaN]}', 400, "strict JSON"),
        (b"[" * 50_000, 400, "strict JSON"),
        (b'{"people": [{"ratings": [{"item": "\\ud800", "rating": 3}]}]}', 400, "strict JSON"),
        (b"", 400, "strict JSON"),
    ],
)
def test_what_is_not_right_is_refused_with_what_must_hold_and_where_to_look(value, people, body, status, words):
    for site in (value, people):
        found = ask(site.port, "POST", "/v1/fold-in", body, content_type="application/json")
        assert found[0] == status
        assert words in json.loads(found[1])["error"]


def test_another_content_type_method_page_or_name_is_refused(value):
    assert ask(value.port, "POST", "/v1/predict", b"items=1")[0] == 415
    status, _, headers = ask(value.port, "GET", "/v1/predict")
    assert (status, headers["allow"]) == (405, "POST")
    assert ask(value.port, "GET", "/v1/../etc/passwd")[0] == 404
    assert ask(value.port, "GET", "/v1/health", host="evil.example")[0] == 421


def test_health_release_and_metrics_answer(value, folders):
    _, health = ask(value.port, "GET", "/v1/health")[:2]
    assert json.loads(health)["folder"] == "as loaded"
    facts = json.loads(ask(value.port, "GET", "/v1/release")[1])
    certificate = load_release(folders["value"]).certificate
    assert (facts["unit"], facts["epsilon"]) == ("value", certificate.epsilon)
    text = ask(value.port, "GET", "/v1/metrics")[1].decode()
    assert 'dpsr_requests_total{route="/v1/health",status="200"}' in text


def test_every_example_of_the_openapi_page_is_answered(value, people, likes):
    for site in (value, people, likes):
        assert ask(site.port, "GET", "/docs")[0] == 200
        document = json.loads(ask(site.port, "GET", "/openapi.json")[1])
        for path, methods in document["paths"].items():
            if "post" in methods:
                example = methods["post"]["requestBody"]["content"]["application/json"]["example"]
                assert post(site.port, path, example)[0] == 200
            else:
                assert ask(site.port, "GET", path)[0] == 200


def test_the_openapi_page_has_nothing_from_elsewhere_and_shows_every_operation(value):
    page = ask(value.port, "GET", "/docs")[1].decode()
    assert "http://" not in page
    assert "https://" not in page
    assert "<script" not in page
    for path in json.loads(ask(value.port, "GET", "/openapi.json")[1])["paths"]:
        assert path in page
    assert ask(value.port, "GET", "/docs.css")[0] == 200
