"""A release behind a server, with what the server keeps in reach of a test."""

from dpsr.serve.app import application
from dpsr.serve.loaded import Served
from dpsr.serve.metrics import Metrics
from dpsr.web.guard import allowed_hosts


class Site:
    """A server, its port, and what it keeps."""

    def __init__(self, folder):
        self.served, self.metrics, self.port = Served(folder), Metrics(), 0

    def make(self, port):
        self.port = port
        return application(self.served, self.metrics, allowed_hosts("127.0.0.1", port))
