"""The studio's journey as pictures for the documentation: python tests/helpers/studio_pictures.py docs/studio

Each page wide and light, and narrow and dark. The ratings are the embedded sample.
"""

import os
import sys
import tempfile
from pathlib import Path

from chromium import ARGUMENTS, EXECUTABLE, PATIENCE, follow, follow_text
from PIL import Image
from playwright.sync_api import sync_playwright
from studio_process import run, studio_in

VIEWS = {"wide-light": (1100, "light"), "narrow-dark": (390, "dark"), "narrow-light": (390, "light"),
         "wide-dark": (1100, "dark")}  # fmt: skip
KEPT = ("wide-light", "narrow-dark")
COLOURS = 48
STATE = "**/run/state*"
"""What the page of a release that goes on asks every moment."""


def journey(target: Path, *, every_view: bool) -> None:
    """Walk from the file to the list, and take a picture of every page."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as driver:
        folder = Path(place) / "sample"
        assert run(place, "demo", "--sample", "sample").returncode == 0
        (folder / "pairs.csv").unlink()
        with studio_in(folder) as studio:
            browser = driver.chromium.launch(executable_path=EXECUTABLE, args=ARGUMENTS)
            page = browser.new_page()
            page.set_default_timeout(PATIENCE)

            def picture(name: str) -> None:
                for view, (width, theme) in VIEWS.items():
                    if every_view or view in KEPT:
                        page.set_viewport_size({"width": width, "height": 760})
                        page.emulate_media(color_scheme=theme)
                        height = page.evaluate("document.documentElement.scrollHeight")
                        page.set_viewport_size({"width": width, "height": height})  # a frame out of sight stays white
                        page.wait_for_timeout(400)
                        file = target / f"{name}-{view}.png"
                        page.screenshot(path=file)
                        smaller(file)
                page.set_viewport_size({"width": 1100, "height": 760})

            walk(page, studio, picture)
            browser.close()


def walk(page, studio, picture) -> None:
    """Every step, as a person would take it."""
    page.goto(studio.link)
    page.wait_for_url("**/")
    picture("1-ratings")
    follow(page, "link", "ratings.csv")
    page.get_by_label("List of items, with titles").fill("items.csv")
    follow(page, "button", "Look again")
    page.get_by_text("1 to 5 stars").click()
    picture("2-columns")
    follow(page, "button", "Go on to unit and epsilon")
    page.get_by_label("Ledger", exact=True).fill("ledger.db")
    follow(page, "button", "Look at the ledger")
    page.get_by_label("Name of the data set").fill("films")
    follow(page, "button", "Make this ledger")
    picture("3-epsilon")
    follow_text(page, "A whole person")
    picture("3-people")
    follow_text(page, "How much somebody liked something")
    follow(page, "button", "Review the release")
    picture("4-review")
    page.locator("#spend").click()
    page.wait_for_selector("#stages li:nth-child(2)")
    held = []

    def hold(route) -> None:  # Playwright marks its handlers, and a method of a list cannot be marked
        held.append(route)

    page.route(STATE, hold)  # or the release ends, and its page comes, between two views
    picture("5-releasing")
    for route in held:  # before they are let go: Playwright answers for whatever is still held then
        route.continue_()
    page.unroute(STATE)
    page.wait_for_url("**/release?*")
    page.frame_locator("iframe").get_by_role("heading", level=1).wait_for()
    picture("6-release")
    follow(page, "link", "Try the release")
    for place, stars in enumerate("51435", 1):
        page.locator(f"#t{place}").select_option(stars)
    follow(page, "button", "Show my list")
    picture("7-try-out")


def smaller(file: Path) -> None:
    """Few colours are enough for text on paper."""
    Image.open(file).convert("RGB").quantize(COLOURS).save(file, optimize=True)


if __name__ == "__main__":
    journey(Path(sys.argv[1]), every_view=bool(os.environ.get("EVERY_VIEW")))
