"""Real releases, a real browser, and text by strangers."""

from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pyarrow as pa
import pytest
from strangers import PAYLOADS

from dpsr import DPSR
from dpsr.data import realistic


@pytest.fixture(scope="session")
def ratings():
    return realistic(0, n_users=120, n_items=60, n_ratings=2_400, timestamps=True)


@pytest.fixture(scope="session")
def model(ratings):
    return DPSR(epsilon=1.0).fit(ratings)


@pytest.fixture(scope="session")
def release(model):
    return model.release


@pytest.fixture(scope="session")
def not_private(ratings):
    return DPSR.paper(epsilon=0.1, as_published=True, random_state=7).fit(ratings).release


@pytest.fixture(scope="session")
def hostile(release):
    """The same release with nothing but hostile ids."""
    mask = release.mask
    users = [f"{PAYLOADS[k % len(PAYLOADS)]}{k}" for k in range(mask.n_users)]
    items = [f"{PAYLOADS[k % len(PAYLOADS)]}{k}" for k in range(mask.n_items)]
    strange = replace(mask, user_ids=pa.array(users), item_ids=pa.array(items))
    return replace(release, model=replace(release.model, mask=strange))


@contextmanager
def open_card(chromium, html, folder, *, width=1280, theme="light", **options):
    """Open a page from a file and note everything it complains about or asks for."""
    path = folder / "card.html"
    path.write_text(html, "utf-8")
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, **options)
    page = context.new_page()
    page.complaints, page.requests, page.dialogs = [], [], []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("request", lambda request: page.requests.append(request.url))
    page.on("dialog", lambda dialog: (page.dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(path.as_uri())
    page.address = path.as_uri()
    yield page
    context.close()


@pytest.fixture
def opened(chromium, tmp_path):
    """A page of its own for a test that changes it."""
    return lambda html, **options: open_card(chromium, html, tmp_path, **options)


@pytest.fixture(scope="module")
def shown(chromium, cards, tmp_path_factory):
    """Every card, opened once for the tests that only look."""
    with ExitStack() as pages:
        yield {
            kind: pages.enter_context(open_card(chromium, html, tmp_path_factory.mktemp("card")))
            for kind, html in cards.items()
        }
