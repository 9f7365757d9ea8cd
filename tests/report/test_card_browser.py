"""The card in a real browser: it opens, answers, prints, and lets nobody out or in."""

import re
from dataclasses import replace
from math import ceil, exp

import pytest
from chromium import examined
from strangers import PAYLOADS

from dpsr import DPSR
from dpsr.data import realistic
from dpsr.pipeline.made_up import with_made_up
from dpsr.report import Budget
from dpsr.report.card import card
from dpsr.report.plots import expected_accuracy

KINDS = ("private", "charged", "not private", "hostile")
VIEWS = [(width, theme) for width in (1280, 360) for theme in ("light", "dark")]


@pytest.fixture(scope="module")
def cards(release, not_private, hostile):
    return {
        "private": card(release.contents),
        "charged": card(release.contents, budget=Budget("films", 3.0, 1.0, 2.0)),
        "not private": card(not_private.contents),
        "hostile": card(hostile.contents),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_it_opens_without_a_complaint_and_asks_the_network_for_nothing(shown, kind):
    page = shown[kind]
    page.wait_for_load_state("networkidle")
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith("data:")] == [page.address]


def test_the_policy_stops_a_planted_request_and_a_planted_script(opened, cards):
    """The two tests above would pass on a page without a policy; this one would not."""
    planted = '<img src="https://planted.invalid/x.png"><script>window.pwned = 1</script></main>'
    with opened(cards["private"].replace("</main>", planted)) as page:
        page.wait_for_load_state("networkidle")
        assert page.evaluate("window.pwned") is None
        assert sum("Content Security Policy" in complaint for complaint in page.complaints) >= 2


@pytest.mark.parametrize("kind", ["charged", "not private"])
def test_axe_finds_nothing_to_complain_about(opened, cards, kind):
    with opened(cards[kind]) as page:
        for summary in page.locator("summary").all():
            summary.click()
        for width, theme in VIEWS:
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=theme)
            page.locator("#shape [data-read]").first.focus()
            results = examined(page)
            assert results.violations_count == 0, (width, theme, results.generate_report())


def test_axe_does_find_a_planted_low_contrast(opened, cards):
    planted = cards["private"].replace("--soft: #56605b", "--soft: #c9cfcc")
    with opened(planted, bypass_csp=True) as page:  # the changed style no longer has the hash of the policy
        assert "color-contrast" in examined(page).generate_snapshot()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [320, 360, 1280])
def test_nothing_sticks_out_sideways(shown, kind, width):
    shown[kind].set_viewport_size({"width": width, "height": 900})
    assert shown[kind].evaluate("document.documentElement.scrollWidth") <= width


def test_on_a_telephone_the_words_of_an_item_s_title_stay_whole(opened):
    ratings = realistic(0, n_users=80, n_items=30, n_ratings=900)
    titles = {item: f"Film {item}" for item in ratings.mask.item_ids.to_pylist()}
    model = DPSR(5.0, unit="user", delta=1e-5, items=list(titles), random_state=0).fit(ratings)
    release = with_made_up(replace(model.release, titles=list(titles.values())), 50)
    with opened(card(release), width=360) as page:
        rows = page.locator("table", has_text="The most popular items by name").locator("tbody td:first-child")
        lines = "cells => cells.map(cell => cell.clientHeight / parseFloat(getComputedStyle(cell).lineHeight))"
        assert all(height < 3 for height in rows.evaluate_all(lines)), "two lines, Film and its number, and the padding"


def test_the_slider_turns_a_belief_into_its_bounds(opened, cards, release):
    with opened(cards["private"]) as page:
        slider = page.get_by_role("slider")
        slider.focus()
        for _ in range(40):
            page.keyboard.press("ArrowLeft")
        assert page.locator("#before").inner_text() == "10 %"
        odds = 1 / 9 * exp(release.certificate.epsilon)
        assert page.locator("#high").inner_text() == f"{ceil(1e4 * odds / (1 + odds)) / 100:.2f} %"
        band = page.locator("#band").get_attribute("x")
        page.keyboard.press("Home")
        assert page.locator("#before").inner_text() == "1 %"
        assert page.locator("#band").get_attribute("x") != band


def test_a_slider_moved_back_says_what_the_page_said_before_any_script(shown, cards):
    printed = re.search(r'id="low">([^<]+)<.*id="high">([^<]+)<', cards["private"], re.DOTALL).groups()
    page = shown["private"]
    assert (page.locator("#low").inner_text(), page.locator("#high").inner_text()) == printed


def test_pointing_at_the_frontier_shows_the_forecast_under_the_pointer(opened, cards, release):
    with opened(cards["private"]) as page:
        readout = page.locator("#frontier .readout")
        before = readout.inner_text()
        dots = page.locator("#frontier [data-read]")
        forecasts = expected_accuracy(release.contents)
        assert dots.count() == len(forecasts)
        for k, forecast in enumerate(forecasts):
            dots.nth(k).hover()
            assert f"{100 * forecast.share:.1f} %" in readout.inner_text()
            assert f"ε = {forecast.epsilon:g}:" in readout.inner_text()
        page.mouse.move(5, 5)
        assert readout.inner_text() == before


def test_every_plot_can_be_read_with_the_keyboard_alone(opened, cards):
    with opened(cards["private"]) as page:
        for plot in page.locator(".plot").all():
            marks = plot.locator("[data-read]")
            assert plot.locator("[data-read][tabindex='0']").count() == 1
            plot.locator("[data-read][tabindex='0']").focus()
            page.keyboard.press("Home")
            for k in range(marks.count()):
                assert plot.locator(".readout").inner_text() == marks.nth(k).get_attribute("aria-label")
                page.keyboard.press("ArrowRight")


def test_this_release_is_the_marked_one(shown):
    marked = shown["private"].locator("#frontier .dot.here")
    assert marked.count() == 1
    assert marked.get_attribute("aria-label").startswith("This release. ε = 1:")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_follows_the_system_until_the_button_is_pressed(opened, cards, theme):
    background = "getComputedStyle(document.body).backgroundColor"
    with opened(cards["private"], theme=theme) as page:
        first = page.evaluate(background)
        assert (sum(map(int, re.findall(r"\d+", first))) > 382) == (theme == "light")
        button = page.get_by_role("button", name="Switch between light and dark")
        button.focus()
        page.keyboard.press("Enter")
        assert page.evaluate(background) != first
        page.keyboard.press("Enter")
        assert page.evaluate(background) == first


def test_paper_is_white_even_for_those_who_read_in_the_dark(opened, cards):
    with opened(cards["private"], theme="dark") as page:
        page.get_by_role("button").click()
        page.get_by_role("button").click()  # dark by choice now
        page.emulate_media(media="print", color_scheme="dark")
        for selector in ("body", ".hero"):
            colour = page.evaluate(f"getComputedStyle(document.querySelector('{selector}')).backgroundColor")
            assert colour == "rgb(255, 255, 255)"
        assert not page.locator("#theme").is_visible()
        assert not page.locator("#prior").is_visible()


def test_a_release_that_is_not_private_is_unmistakable(opened, cards, not_private):
    with opened(cards["not private"]) as page:
        assert page.title().startswith("NOT PRIVATE")
        heading = page.get_by_role("heading", level=1)
        assert heading.inner_text() == "NOT PRIVATE"
        assert page.evaluate("parseFloat(getComputedStyle(document.querySelector('h1')).fontSize)") >= 48
        for reason in not_private.certificate.reasons:
            assert page.get_by_text(reason).is_visible()
        page.mouse.wheel(0, 4_000)
        page.wait_for_function("scrollY > 1000")
        assert page.locator(".ribbon").bounding_box()["y"] == 0, "the warning stays in sight"
        page.emulate_media(media="print")
        assert heading.is_visible()


def test_a_private_release_never_says_otherwise(shown):
    page = shown["private"]
    assert page.get_by_role("heading", level=1).inner_text() == "PRIVATE"
    assert "NOT PRIVATE" not in page.locator("body").inner_text()


@pytest.mark.parametrize("policy", [True, False], ids=["with its policy", "escaping alone"])
def test_text_by_strangers_stays_text(opened, hostile, policy):
    """Ids, the data set's name, reasons and settings are hostile; the second run switches the policy off."""
    bad = PAYLOADS[2]
    certificate = replace(hostile.certificate, software=f"{bad} dpsr")
    strange = type(hostile)(hostile.model, hostile.ratings, certificate, PAYLOADS[1], {bad: bad})
    html = card(strange.contents, budget=Budget(PAYLOADS[0], 3.0, 1.0, 2.0))
    with opened(html, bypass_csp=not policy) as page:
        for place in page.locator("bdi, footer dd, .dot").all():
            place.hover(force=True)  # a pointer over it is enough: nobody waits for it to stand still
        page.evaluate("document.querySelectorAll('*').forEach(e => e.focus && e.focus())")
        assert page.evaluate("window.pwned") is None
        assert page.dialogs == page.complaints == []
        assert page.locator("script").count() == 1
        assert page.locator("img, iframe, object, embed, base, form").count() == 0
        assert page.get_by_text(PAYLOADS[0]).first.is_visible()


def test_a_payload_that_is_not_escaped_would_be_noticed(opened, hostile):
    html = card(hostile.contents).replace("</main>", PAYLOADS[2] + "</main>")
    with opened(html, bypass_csp=True) as page:
        page.wait_for_function("window.pwned === 1")


def test_long_ids_are_cut_and_keep_a_tooltip(shown):
    page = shown["hostile"]
    assert max(map(len, page.locator("bdi").all_inner_texts())) <= 40
    assert page.locator("bdi[title]").count() > 0


def test_without_scripts_everything_but_the_slider_is_there(opened, cards):
    with opened(cards["private"], java_script_enabled=False) as page:
        assert page.get_by_role("heading", level=1).inner_text() == "PRIVATE"
        assert not page.locator("#prior").is_visible()
        assert page.get_by_text("73.11 %").first.is_visible()
