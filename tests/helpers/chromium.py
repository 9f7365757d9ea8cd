"""Where the browser is and how it is started, for the tests and for the picture in the documentation."""

import os

EXECUTABLE = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--in-process-gpu",  # nothing is drawn on a card: no process for it, and none kept ready for other sites
    "--disable-software-rasterizer",
    "--renderer-process-limit=1",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

PATIENCE = 180_000
"""Milliseconds: a forecast is computed anew, in seconds, or minutes where others work too."""


def follow(page, role, name):
    """Click what leads to another page, and wait for that one: a click does not, and finds things on the old page."""
    with page.expect_event("load"):
        page.get_by_role(role, name=name).click()


def follow_text(page, text):
    """The same for a choice that is sent at once."""
    with page.expect_event("load"):
        page.get_by_text(text).click()


def examined(page):
    """What axe has to say against a page: its script is sent to a page once, and nothing comes back but complaints."""
    from axe_playwright_python.base import AXE_SCRIPT, AxeResults

    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    return AxeResults(page.evaluate("axe.run({resultTypes: ['violations']}).then(({violations}) => ({violations}))"))
