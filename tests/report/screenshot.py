"""The picture of the card in the documentation: python tests/report/screenshot.py demo-release docs/card.png"""

import sys
from pathlib import Path

from chromium import ARGUMENTS, EXECUTABLE
from playwright.sync_api import sync_playwright

SIZE = {"width": 1200, "height": 1490}


def picture(release: Path, target: Path) -> None:
    """The first screen of the card, wide and light."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=EXECUTABLE, args=ARGUMENTS)
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto((release / "card.html").resolve().as_uri())
        page.screenshot(path=target)
        browser.close()


if __name__ == "__main__":
    picture(Path(sys.argv[1]), Path(sys.argv[2]))
