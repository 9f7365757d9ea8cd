"""The command itself: it says where it listens, loads anew when asked, and stops without a complaint."""

import json
import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace

import forked
import pytest
from chromium import examined
from live_server import ask


@pytest.fixture(scope="module")
def serving(folders, tmp_path_factory):
    folder = tmp_path_factory.mktemp("serving") / "release"
    shutil.copytree(folders["value"], folder)
    command = [sys.executable, "-m", "dpsr", "serve", str(folder), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)  # as people type it
    line = process.stderr.readline()
    yield SimpleNamespace(process=process, port=int(line.split("127.0.0.1:")[1].split()[0]), folder=folder, first=line)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 0
    assert "Stopped." in said
    assert "Traceback" not in said


def test_it_says_where_it_listens_and_what_is_promised(serving):
    assert serving.first.startswith(f"Listening on http://127.0.0.1:{serving.port} (private: epsilon = 1 per")
    assert ask(serving.port, "GET", "/v1/health")[0] == 200


def test_sighup_takes_over_what_lies_in_the_folder_now(serving, folders):
    shutil.rmtree(serving.folder)
    shutil.copytree(folders["people"], serving.folder)
    assert json.loads(ask(serving.port, "GET", "/v1/health")[1])["folder"] == "replaced"
    serving.process.send_signal(signal.SIGHUP)
    while "Reloaded" not in (line := serving.process.stderr.readline()):
        assert line
    assert json.loads(ask(serving.port, "GET", "/v1/release")[1])["unit"] == "user"


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (360, "dark")])
def test_axe_finds_nothing_to_complain_about_on_the_page_of_operations(chromium, people, width, theme):
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    page = context.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"http://127.0.0.1:{people.port}/docs")
    for summary in page.locator("summary").all():
        summary.click()
    found = examined(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert all(url.startswith(f"http://127.0.0.1:{people.port}/") for url in asked)
    context.close()


def test_what_is_no_release_and_a_port_that_is_taken_are_refused_in_a_sentence(serving, folders, tmp_path):
    for arguments, words in [
        ([str(tmp_path)], "is not a readable release folder"),
        ([str(folders["value"]), "--port", str(serving.port)], "Choose another port with --port"),
    ]:
        command = [sys.executable, "-m", "dpsr", "serve", *arguments]
        done = forked.run(command)
        assert done.returncode == 2
        assert words in " ".join(done.stderr.split())
