"""The folder is deleted or replaced: the server says so and serves what it loaded, until it is told to load anew."""

import json
import shutil

import pytest
from live_server import ask, post, running
from served_site import Site


@pytest.fixture
def site(folders, tmp_path):
    shutil.copytree(folders["value"], tmp_path / "release")
    made = Site(tmp_path / "release")
    with running(made.make):
        yield made


def health(site):
    return json.loads(ask(site.port, "GET", "/v1/health")[1])


def test_a_deleted_folder_is_reported_and_what_was_loaded_is_served(site):
    before = post(site.port, "/v1/recommend", {"users": [1]})
    shutil.rmtree(site.served.folder)
    assert health(site)["folder"] == "gone"
    assert "still served" in health(site)["note"]
    assert post(site.port, "/v1/recommend", {"users": [1]}) == before
    assert site.served.reload().startswith("Not reloaded, the release from before is still served")
    assert post(site.port, "/v1/recommend", {"users": [1]}) == before


def test_a_replaced_folder_is_reported_and_taken_over_whole_when_asked(site, folders):
    shutil.rmtree(site.served.folder)
    shutil.copytree(folders["people"], site.served.folder)
    assert health(site)["folder"] == "replaced"
    assert post(site.port, "/v1/recommend", {"users": [1]})[0] == 200
    assert site.served.reload().startswith("Reloaded")
    assert health(site)["folder"] == "as loaded"
    assert post(site.port, "/v1/recommend", {"users": [1]})[0] == 403


def test_a_folder_with_one_changed_byte_is_not_taken_over(site):
    model = site.served.folder / "model.json"
    model.write_bytes(model.read_bytes().replace(b"1", b"2", 1))
    assert "Not reloaded" in site.served.reload()
    assert post(site.port, "/v1/recommend", {"users": [1]})[0] == 200
