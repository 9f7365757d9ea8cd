"""The picture of the card in the documentation: python tests/report/screenshot.py demo-release docs/card.png"""

import sys
from pathlib import Path

from chromium import ARGUMENTS, EXECUTABLE
from playwright.sync_api import sync_playwright

WIDTH = 1200


def picture(release: Path, target: Path) -> None:
    """The card, wide and light, down to the odds."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=EXECUTABLE, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        page.goto((release / "card.html").resolve().as_uri())
        odds = page.locator("#odds").bounding_box()
        whole = {"x": 0, "y": 0, "width": WIDTH, "height": odds["y"] + odds["height"] - 20}
        page.screenshot(path=target, full_page=True, clip=whole)
        browser.close()


if __name__ == "__main__":
    picture(Path(sys.argv[1]), Path(sys.argv[2]))
