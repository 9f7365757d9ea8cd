"""An application on a real socket, in a thread of this process, so that a test can look into its memory."""

import http.client
import json
import threading
from contextlib import contextmanager

from dpsr.web.listening import bound, server_for


@contextmanager
def running(make):
    """`make(port)` gives the application; yields the port it answers on."""
    with bound("127.0.0.1", 0) as opened:
        port, begun = opened.getsockname()[1], threading.Event()
        server = server_for(make(port), begun.set)
        thread = threading.Thread(target=lambda: server.run(sockets=[opened]), daemon=True)
        thread.start()
        assert begun.wait(30)
        yield port
        server.should_exit = True
        thread.join(30)


def ask(port, method, path, body=None, **headers):
    """Status and body of one request; a body that is not bytes is sent as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    if body is not None and not isinstance(body, bytes):
        body, headers = json.dumps(body).encode(), {"content-type": "application/json", **headers}
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    found = answer.status, answer.read(), answer.headers
    connection.close()
    return found


def post(port, path, body, **headers):
    """Status and record of one request."""
    status, text, _ = ask(port, "POST", path, body, **headers)
    return status, json.loads(text)
