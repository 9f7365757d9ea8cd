"""The real `dpsr studio` in a folder of its own, and plain HTTP to it."""

import http.client
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from urllib.parse import urlencode, urlsplit

import forked

HELD = ".held"


@contextmanager
def releases_held(folder):
    """Releases that a studio in `folder` begins are still being made when this ends."""
    (folder / HELD).touch()
    try:
        yield
    finally:
        (folder / HELD).unlink()


class Studio:
    """A running studio: where it listens, its one-time link, and requests with or without its cookie."""

    def __init__(self, process, link, said=""):
        self.process, self.link, self.said = process, link, said
        self.address = "{0.scheme}://{0.netloc}".format(urlsplit(link))
        self.port = urlsplit(link).port
        self.cookie = ""

    def ask(self, method, path, form=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        body = None if form is None else urlencode(form).encode()
        if self.cookie:
            headers.setdefault("cookie", self.cookie)
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        found = answer.status, answer.read().decode(), answer.headers
        connection.close()
        return found

    def enter(self):
        """Use the link, as a browser would."""
        status, _, headers = self.ask("GET", self.link.removeprefix(self.address))
        assert status == 200
        self.cookie = headers["set-cookie"].split(";")[0]
        return headers["set-cookie"]

    def secret(self, path):
        """The secret that the forms of a page carry."""
        return re.search(r'name="form_secret" value="([^"]+)"', self.ask("GET", path)[1])[1]


@contextmanager
def studio_in(folder, *arguments, program="forked_studio"):
    """`dpsr studio` in `folder`; yields it once it listens, and stops it. Its commands are processes, too."""
    command = [sys.executable, "-m", *program.split(), *arguments]
    environment = {**os.environ, forked.SERVER: forked.server(), forked.HOLD: str(folder / HELD)}
    start = forked.Forked if program == "forked_studio" else subprocess.Popen
    process = start(command, cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
    said = ""
    while "token=" not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    found = Studio(process, said.split()[-1], said)
    try:
        yield found
    finally:
        process.terminate()
        process.communicate(timeout=120)


def run(folder, *arguments):
    """A command in the folder; what it printed."""
    command = [sys.executable, "-m", "dpsr", *arguments]
    return forked.run(command, cwd=folder)
