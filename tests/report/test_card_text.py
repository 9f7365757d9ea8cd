"""What the card says, against oracles that do not use it: counts, prices, forecasts, and nothing raw."""

import base64
import hashlib
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from importlib import resources
from math import inf
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from strangers import PAYLOADS

from dpsr import DPSR, Ratings, Scale, load_release
from dpsr.certify.certificate import ChargeReference
from dpsr.data import realistic
from dpsr.privacy.channels import gaussian
from dpsr.privacy.noise import NoiseSource
from dpsr.privacy.vault import privatise
from dpsr.report import Budget
from dpsr.report.card import LIMITS, card
from dpsr.report.plots import expected_accuracy
from dpsr.types import Mask, Model

LIMIT = 1_500_000


class Words(HTMLParser):
    """The visible text of a page."""

    def __init__(self, html):
        super().__init__()
        self.text, self.hidden = [], False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.hidden = tag in ("script", "style")

    def handle_endtag(self, tag):
        self.hidden = False

    def handle_data(self, data):
        if not self.hidden:
            self.text.append(data)

    def __str__(self):
        return re.sub(r"\s+", " ", " ".join(self.text))


def test_every_saved_release_has_its_card_and_it_can_be_drawn_again_byte_for_byte(model, tmp_path):
    page = (model.save(tmp_path / "r") / "card.html").read_text("utf-8")
    assert page == card(load_release(tmp_path / "r").contents)


def test_the_same_release_gives_the_same_bytes(release):
    assert card(release.contents) == card(release.contents)


def test_the_public_counts_are_on_the_page(release):
    words = str(Words(card(release.contents)))
    mask = release.mask
    assert f"{mask.n_ratings:,} ratings fill" in words
    counts = sorted(int(n) for n in np.bincount(mask.users))
    assert f"median {np.median(counts):g}, most {counts[-1]:,}" in words
    assert f"{counts[-1]} {counts[-1] * release.certificate.epsilon:.4g}" in words


def test_the_bars_add_up_to_everything_there_is(release):
    reads = re.findall(r'data-read="([^"]*)"', card(release.contents))
    for things, total in (
        ("users", release.mask.n_users),
        ("items", release.mask.n_items),
        ("released ratings", release.mask.n_ratings),
    ):
        found = [int(read.split(": ")[1].split()[0].replace(",", "")) for read in reads if read.endswith(f" {things}")]
        assert sum(found) == total


def test_the_parts_on_the_page_are_those_of_the_certificate(ratings):
    release = DPSR(epsilon=3.0).fit(ratings).release
    assert [part.name for part in release.certificate.parts] == ["level histogram", "window sums", "ratings"]
    words = str(Words(card(release.contents)))
    for part in release.certificate.parts:
        assert f"{100 * part.stated['epsilon'] / release.certificate.epsilon:.1f} %" in words


def test_the_forecast_is_the_plan_for_the_same_mask(release):
    epsilons = [f.epsilon for f in expected_accuracy(release.contents)]
    assert 1.0 in epsilons
    planned = DPSR.plan(release.mask, release.scale, epsilons)
    assert [f.share for f in expected_accuracy(release.contents)] == pytest.approx([f.share for f in planned])


def test_other_methods_get_no_forecast_and_the_card_says_why(not_private):
    assert expected_accuracy(not_private.contents) == ()
    assert "No forecast: it describes the default pipeline" in str(Words(card(not_private.contents)))


def test_without_a_ledger_the_card_says_so_and_with_one_what_is_left(release):
    assert "No ledger was used" in str(Words(card(release.contents)))
    words = str(Words(card(release.contents, budget=Budget("films", 3.0, 1.23456, 1.76544))))
    assert "No ledger" not in words
    assert "1.235" in words, "spent is rounded up"
    assert "1.765" in words, "what is left is rounded down"


def test_the_card_of_a_charge_that_left_no_page_does_not_say_that_there_was_no_ledger(release):
    paid = replace(release, certificate=replace(release.certificate, charge=ChargeReference("0" * 32, "0" * 64)))
    words = str(Words(card(paid.contents)))
    assert "No ledger was used" not in words
    assert "A ledger was charged for this release" in words


@pytest.mark.parametrize("asked", [1e-3, 0.13, 1.0, 9.5, 30.0])
def test_any_budget_can_be_drawn(release, asked):
    asked_for = replace(release, certificate=replace(release.certificate, nominal=asked))
    assert 'class="dot here"' in card(asked_for.contents)


def test_ratings_declared_private_have_no_odds_to_state(ratings):
    release = DPSR.paper().reconstruct(ratings).release
    assert release.certificate.epsilon == inf
    words = str(Words(card(release.contents)))
    assert "NOT PRIVATE" in words
    assert "a guess may become a certainty" in words


def test_no_raw_rating_is_on_the_page():
    """One rating has a value that nothing else has; no spelling of it may appear. Seeded, or noise could spell it."""
    rng = np.random.default_rng(0)
    cells = rng.choice(40 * 25, 400, replace=False)
    values = rng.choice([10_000.0, 10_900.0], 400)
    values[17] = canary = 10_437.0
    ratings = Ratings.from_arrays(cells // 25, cells % 25, values, scale=Scale(10_000, 10_900, step=1))
    page = card(DPSR.paper(epsilon=1.0, random_state=0).fit(ratings).release.contents)
    for spelling in (f"{canary:.0f}", f"{canary:,.0f}"):
        assert spelling not in page


def test_a_million_ratings_fit_on_a_page():
    rng = np.random.default_rng(0)
    m, n, total = 100_000, 20_000, 1_000_000
    first = rng.integers(0, n - 10, m)
    mask = Mask(
        pa.array([f"user-{k:06d}-" + "é" * 60 for k in range(m)]),
        pa.array([f"item-{k:05d}-" + "<" * 60 for k in range(n)]),
        np.arange(0, total + 1, total // m),
        (first[:, None] + np.arange(total // m)).ravel().astype(np.int32),
    )
    scale = Scale(0.5, 5, step=0.5)
    model = Model(
        mask=mask, scale=scale, user_factors=rng.random((m, 2)), item_factors=rng.random((n, 2)),
        user_means=rng.random(m), item_means=rng.random(n), overall=3.0, residual_variance=1.0,
        user_mean=np.zeros(2), user_covariance=np.eye(2),
    )  # fmt: skip
    ratings = scale.clip(rng.normal(3.5, 1.0, total))
    small = DPSR(epsilon=1.0).fit(Ratings.from_arrays([1, 1, 2], [1, 2, 2], [1, 2, 3], scale=Scale(1, 5))).release
    big = replace(small, model=model, ratings=ratings)
    assert len(card(big.contents).encode()) < LIMIT / 10


def test_hostile_ids_do_not_make_it_grow(hostile):
    assert len(card(hostile.contents).encode()) < 200_000


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_text_is_escaped_wherever_it_may_stand(release, payload):
    ids = pa.array([f"{payload}{k}" for k in range(release.mask.n_users)])
    strange = replace(release, model=replace(release.model, mask=replace(release.mask, user_ids=ids)))
    page = card(strange.contents, budget=Budget(payload, 3.0, 1.0, 2.0))
    assert page.count("<script>") == page.count("</script>") == 1
    assert "window.pwned=1>" not in page
    assert not set("\u2028\u2029\u202e\x00\x1b\r") & set(page)
    clean = card(release.contents, budget=Budget("plain", 3.0, 1.0, 2.0))
    assert _tags(page) == _tags(clean), "no id adds an element"


def test_the_policy_names_exactly_the_style_and_the_script_of_the_page(release):
    page = card(release.contents)
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1))
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        (source,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert " style=" not in page
    assert not re.search(r"\son\w+=", page)


def test_no_address_leads_out(release):
    page = card(release.contents).replace("http://www.w3.org/2000/svg", "")
    assert "http" not in page.replace("http-equiv", "")
    assert "url(" not in page
    assert "@import" not in page


def test_every_limit_is_on_the_card(release):
    words = str(Words(card(release.contents)))
    for limit in LIMITS:
        assert limit.name in words


def _tags(page):
    return [tag for tag in re.findall(r"<(\w+)", page) if tag not in ("rect", "circle", "text", "line")]


def test_every_pair_of_colours_that_carries_text_can_be_read():
    """The WCAG ratio, computed here from the style itself: 4.5 for text, in both themes."""
    css = (resources.files("dpsr.report") / "templates" / "card.css").read_text("utf-8")
    blocks = re.findall(r"\{([^{}]*--paper[^{}]*--alarm-tint[^{}]*)\}", css)
    themes = [dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for block in blocks]
    assert len(themes) == 3, "light, dark by the system, dark by choice"
    grounds = {
        "paper": ("ink", "soft", "accent", "alarm"),
        "tint": ("ink", "soft", "accent"),
        "alarm-tint": ("ink", "soft", "alarm"),
        "alarm": ("on-alarm",),
    }
    for theme in themes:
        for ground, texts in grounds.items():
            for text in texts:
                assert _contrast(theme[text], theme[ground]) >= 4.5, (text, ground, theme)


def _contrast(one, other):
    lights = sorted(_luminance(colour) + 0.05 for colour in (one, other))
    return lights[1] / lights[0]


def _luminance(colour):
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_the_limits_page_grades_every_limit_of_the_card_alike():
    page = (Path(__file__).parents[2] / "docs" / "limits.md").read_text("utf-8")
    grades = {"high": "## High", "medium": "## Medium", "low": "## Low"}
    for limit in LIMITS:
        section = page.split(grades[limit.severity])[1].split("\n## ")[0]
        assert f"### {limit.name}" in section


def test_the_card_says_which_key_was_to_sign_and_how_to_check(release):
    words = str(Words(card(release.contents, signer="ab" * 32)))
    assert "was to be signed by the key with the fingerprint " + "ab" * 32 in words
    assert "dpsr verify release/ --signer" in words
    unsigned = str(Words(card(release.contents)))
    assert "No signature was asked for when it was made" in unsigned
    assert "--ledger ledger.db" not in unsigned, "no ledger was charged for it"


def test_the_card_of_a_charged_release_says_how_to_ask_the_ledger(release):
    paid = replace(release, certificate=replace(release.certificate, charge=ChargeReference("0" * 32, "1" * 64)))
    assert "dpsr verify release/ --ledger ledger.db" in str(Words(card(paid.contents)))


def test_the_card_of_a_release_that_bought_the_mean_alone_names_no_other_part(tmp_path):
    """The tables of a mean-only release hold nothing but the mean, and the card must not say otherwise."""
    poor = DPSR(0.001).fit(realistic(0, n_users=30, n_items=20, n_ratings=200))
    assert [part.name for part in poor.certificate.parts] == ["total"]
    words = str(Words(card(poor.release.contents)))
    assert "one noisy sum of all ratings: their mean" in words
    for absent in ("Histogram", "Window sums", "noisy sums of each item", "integers", "through a randomising table"):
        assert absent not in words


def test_the_card_of_a_release_of_people_never_rounds_delta_down():
    ratings = realistic(0, n_users=80, n_items=30, n_ratings=900)
    page = card(DPSR(2.0, unit="user", delta=1.0449e-6, random_state=0).fit(ratings).release)
    assert "1e-06" not in page
    assert page.count("δ = 1.045e-06") == 4, "under the headline, and for each of three units"


def test_nor_does_the_card_of_values_with_a_delta():
    ratings = realistic(0, n_users=40, n_items=30, n_ratings=500)
    private = privatise(ratings, gaussian(ratings.scale, 2.0, 1.0449e-6), noise=NoiseSource.system())
    release = DPSR.paper(rank=2).reconstruct(private).release
    (shown,) = re.findall("δ = ([^ ]+) per rating", card(release.contents))
    assert release.certificate.delta <= float(shown) <= 1.001 * release.certificate.delta


def test_odds_on_the_card_of_people_are_about_being_there():
    ratings = realistic(0, n_users=80, n_items=30, n_ratings=900)
    page = card(DPSR(2.0, unit="user", delta=1e-6).fit(ratings).release)
    assert "Whatever somebody believed about whether one person is there before" in page
    assert "It costs more than twice ε to hide what somebody rated who is known to be there" in page
    assert "What a guess whether one person is there can become" in page
