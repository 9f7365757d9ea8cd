"""The whole journey in a real browser: file, columns, scale, unit, epsilon, release, card, try-out; and accidents."""

import re
import threading
from contextlib import contextmanager
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, HTTPServer
from math import ceil, exp
from time import monotonic, sleep

import pytest
from chromium import PATIENCE, examined, follow, follow_text
from studio_process import releases_held, studio_in

from dpsr.privacy.ledger.ledger import Ledger
from dpsr.release import verify

VIEWS = [(1280, "light"), (360, "dark")]


@pytest.fixture(scope="module")
def context(chromium, studio):
    found = chromium.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    found.set_default_timeout(PATIENCE)
    page = found.new_page()
    page.goto(studio.link)
    page.wait_for_url("**/columns?*")
    page.close()
    yield found
    found.close()


@pytest.fixture
def page(context, studio):
    """A tab that notes everything it complains about or asks for."""
    opened = context.new_page()
    opened.complaints, opened.requests = [], []
    opened.on("console", lambda message: opened.complaints.append(message.text))
    opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.on("request", lambda request: opened.requests.append(request.url))
    opened.goto(f"{studio.address}/")
    yield opened
    opened.close()


def budget(folder, ledger):
    return Ledger.open(str(folder / ledger)).budget("films")


def review(studio, ledger, out, epsilon="0.5"):
    chosen = "source=ratings.csv&user=user&item=item&rating=rating&scale=1:5:1"
    return f"{studio.address}/review?{chosen}&epsilon={epsilon}&ledger={ledger}&dataset=films&out={out}"


def looks_right(page, *, both=False):
    """Axe has nothing to say and nothing sticks out: wide and narrow, in turns light and dark."""
    page.wait_for_load_state()  # before its stylesheet a page has another width
    page.looks = 1 - getattr(page, "looks", 0)
    for (width, theme), turn in zip(VIEWS, (page.looks, 1 - page.looks), strict=True):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=theme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url
        if turn or both:
            found = examined(page)
            assert found.violations_count == 0, found.generate_report()
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")


def test_from_a_file_to_a_list_of_ones_own(page, studio, folder, ledger):
    looks_right(page)
    follow(page, "link", "ratings.csv")
    assert page.get_by_label("Who rated").input_value() == "user"
    page.get_by_label("Who rated").select_option("item")
    follow(page, "button", "Look again")
    assert "is named as user and as item" in page.get_by_role("alert").inner_text()
    page.get_by_label("Who rated").select_option("user")
    page.get_by_label("List of items, with titles").fill("items.csv")
    follow(page, "button", "Look again")
    page.get_by_text("1 to 5 stars").click()
    assert page.get_by_label("Low:high:step").input_value() == "1:5:1"
    assert "dpsr describe ratings.csv" in page.locator("code").inner_text()
    looks_right(page)

    follow(page, "button", "Go on to unit and epsilon")
    page.get_by_label("Ledger", exact=True).fill(ledger)
    follow(page, "button", "Look at the ledger")
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("Home")
    read = {name: page.locator(f"#{name}") for name in ("error", "guess", "factor", "after", "epsilon-shown")}
    weakest = {name: one.inner_text() for name, one in read.items()}
    while read["epsilon-shown"].inner_text() != "0.5":
        page.keyboard.press("ArrowRight")
    chosen = {name: one.inner_text() for name, one in read.items()}
    assert chosen["guess"] == f"{ceil(1e4 * exp(0.5) / (1 + exp(0.5))) / 100:.2f} %"
    assert float(chosen["error"]) < float(weakest["error"])
    assert float(chosen["factor"]) > float(weakest["factor"])
    assert chosen["after"] == "0.5"
    assert "epsilon 0.5" in slider.get_attribute("aria-valuetext")
    page.get_by_label("Exactly").fill("3")
    assert "the ledger will refuse it" in read["after"].inner_text()
    page.get_by_label("Exactly").fill("0.5")
    looks_right(page, both=True)

    page.get_by_label("Folder for the release").fill("journey")
    follow(page, "button", "Review the release")
    command = page.locator("code").inner_text()
    assert command == (
        "dpsr release ratings.csv --user user --item item --rating rating --scale 1:5:1 --epsilon 0.5 --unit value "
        f"--items items.csv --ledger {ledger} --out journey"
    ).replace(ledger, f"'{ledger}'" if re.search(r"[^\w.-]", ledger) else ledger)
    looks_right(page)
    with releases_held(folder):
        follow(page, "button", "Spend epsilon = 0.5 and release")
        assert "/run?" in page.url
        looks_right(page)
    page.wait_for_url("**/release?*")

    assert page.get_by_role("heading", level=1).inner_text() == "Released"
    assert (folder / "journey" / "manifest.json").exists()
    assert budget(folder, ledger).left_epsilon == Fraction(1, 2)
    assert "The ledger has 0.5 left of 1" in page.locator("main").inner_text()
    assert page.frame_locator("iframe").get_by_role("heading", level=1).inner_text() == "PRIVATE"
    looks_right(page)
    follow(page, "link", "Try the release")
    for place, stars in enumerate("51435", 1):
        page.locator(f"#t{place}").select_option(stars)
    follow(page, "button", "Show my list")
    assert page.get_by_role("heading", name="Your list", exact=True).is_visible()
    assert page.locator("section table tbody tr").count() == 10
    assert "Film" in page.locator("section table").inner_text()
    assert "rate" not in page.url.partition("?")[2]
    looks_right(page)
    assert [text for text in page.complaints if "sandboxed" not in text] == []
    assert {url.split("/")[2] for url in page.requests if url.startswith("http")} == {f"127.0.0.1:{studio.port}"}


def test_people_can_be_protected_as_a_whole_and_nobody_is_in_the_release(page, studio, folder):
    page.goto(
        f"{studio.address}/choose?source=ratings.csv&user=user&item=item&rating=rating&scale=1:5:1&items=items.csv"
    )
    follow_text(page, "A whole person")
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("End")
    fewest = int(page.locator("#people").inner_text().replace(",", ""))
    for _ in range(6):
        page.keyboard.press("ArrowLeft")
    assert int(page.locator("#people").inner_text().replace(",", "")) > fewest > 60
    looks_right(page, both=True)
    page.get_by_label("Folder for the release").fill("people")
    follow(page, "button", "Review the release")
    assert "--unit user --delta 1e-6" in page.locator("code").inner_text()
    page.locator("#spend").click()
    page.wait_for_url("**/release?*")
    assert not (folder / "people" / "users.parquet").exists()
    follow(page, "link", "Try the release")
    page.locator("#t1").select_option("5")
    follow(page, "button", "Show my list")
    assert page.locator("section table tbody tr").count() == 10


def test_axe_would_find_a_planted_low_contrast(page):
    page.evaluate("document.documentElement.style.setProperty('--soft', '#d9dcda')")
    assert "color-contrast" in examined(page).generate_snapshot()


@contextmanager
def another_origin(html):
    """A page of somebody else's on this machine: the same site, so the cookie goes along, and another origin."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *words):
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_a_page_of_another_origin_cannot_release_although_the_cookie_goes_along(page, studio, folder, ledger):
    page.goto(review(studio, ledger, "forged"))
    form = page.locator("form").evaluate("form => form.outerHTML")  # with the right secret, even
    form = form.replace('action="/begin-release"', f'action="{studio.address}/begin-release"')
    with another_origin(f"{form}<script>document.forms[0].requestSubmit()</script>") as address:
        page.goto(address)
        page.wait_for_url("**/begin-release")
        assert "A form must come from a page of this studio" in page.locator("body").inner_text()
    assert not (folder / "forged").exists()
    assert budget(folder, ledger).charges == 0


THRICE = """async () => {
    const form = document.querySelector('form');
    const send = () => fetch(form.action, {method: 'POST', body: new URLSearchParams(new FormData(form))});
    return (await Promise.all([1, 2, 3].map(send))).map((answer) => answer.url);
}"""


def test_two_tabs_cannot_spend_twice_and_an_order_sent_thrice_is_filled_once(page, context, studio, folder, ledger):
    """The second tab is told that one is being made, and later that the folder is there: one charge."""
    other = context.new_page()
    for tab in (page, other):
        tab.goto(review(studio, ledger, "twice"))
    with releases_held(folder):
        assert len(set(page.evaluate(THRICE))) == 1
        other.locator("#spend").click()
        other.wait_for_url("**/begin-release")
        assert "One release is made at a time" in other.locator("body").inner_text()
    wait_for(lambda: (folder / "twice").exists())
    other.go_back()
    other.wait_for_selector("#spend")
    other.reload()
    assert "is there already" in other.locator("main").inner_text()
    assert (budget(folder, ledger).charges, budget(folder, ledger).releases) == (1, 1)
    other.close()


def test_a_page_left_open_over_a_finished_budget_spends_nothing(page, studio, folder, ledger):
    page.goto(review(studio, ledger, "late", epsilon="0.75"))
    assert "has 1 left of 1" in page.locator("main").inner_text()
    book = Ledger.open(str(folder / ledger))
    book.charge("films", Fraction(3, 4), Fraction(0), unit="value", method="elsewhere", note="", charge_id="a" * 32)
    page.locator("#spend").click()
    page.wait_for_selector("text=No release was made")
    page.wait_for_load_state()
    assert "0.25" in page.get_by_role("alert").inner_text()
    assert not (folder / "late").exists()
    assert budget(folder, ledger).charges == 1
    looks_right(page)


def wait_for(condition, seconds=120):
    until = monotonic() + seconds
    while not condition():
        assert monotonic() < until
        sleep(0.2)


def test_closing_the_browser_and_killing_the_studio_in_the_middle_leaves_a_release_that_is_found_again(
    chromium, folder, ledger
):
    with releases_held(folder), studio_in(folder) as doomed:
        closing = chromium.new_context()
        closing.set_default_timeout(PATIENCE)
        tab = closing.new_page()
        tab.goto(doomed.link)
        tab.wait_for_url("**/")
        tab.goto(review(doomed, ledger, "closed"))
        tab.locator("#spend").click()
        tab.wait_for_url("**/run?*")
        closing.close()
        doomed.process.kill()
    wait_for(lambda: (folder / "closed").exists())
    assert (budget(folder, ledger).charges, budget(folder, ledger).releases) == (1, 1)
    assert verify(folder / "closed").private
    with studio_in(folder) as again:
        again.enter()
        assert "closed" in again.ask("GET", "/")[1]


def test_without_scripts_the_journey_still_leads_to_a_review(chromium, context, studio):
    plain = chromium.new_context(java_script_enabled=False)
    plain.set_default_timeout(PATIENCE)
    plain.add_cookies(context.cookies())
    tab = plain.new_page()
    tab.goto(f"{studio.address}/")
    follow(tab, "link", "ratings.csv")
    tab.get_by_label("Low:high:step").fill("1:5:1")
    follow(tab, "button", "Go on to unit and epsilon")
    tab.get_by_label("Exactly").fill("0.7")
    follow(tab, "button", "Review the release")
    assert "--epsilon 0.7" in tab.locator("code").inner_text()
    plain.close()
