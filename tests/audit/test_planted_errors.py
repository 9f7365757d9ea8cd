"""Errors planted in the library itself, one line each, and what catches them: a test, the audit, verify.

Every line of the table in docs/audit.md is here: with the error the named catcher speaks up, without it it is silent.
Trials are seeded and bound epsilon at a risk of one in a million, so a verdict is the same in every run.
"""

import re
from contextlib import nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from planting import module_of_tests, planted

from dpsr import DPSR, Scale
from dpsr.audit.auditing import fresh_keys, stage1_trials
from dpsr.audit.replay import audit_replay
from dpsr.audit.trials import run
from dpsr.certify.parts import DividedSumsPart, HistogramPart
from dpsr.data import realistic
from dpsr.engine.incidence import Division
from dpsr.engine.raw import RawTable
from dpsr.errors import DpsrError, PrivacyError, ReleaseError
from dpsr.pipeline import publish, value
from dpsr.privacy.channels import laplace
from dpsr.privacy.channels.channel import Sampler
from dpsr.privacy.channels.optimal import _built, response_table
from dpsr.privacy.ledger.ledger import Ledger
from dpsr.privacy.noise import NoiseSource, discrete_laplace
from dpsr.privacy.vault.vault import Vault
from dpsr.release import load_release, verify

STARS, RISK = Scale(1, 5), 1e-6
DOCUMENT = Path(__file__).parents[2] / "docs" / "audit.md"


def people():
    return realistic(3, n_users=60, n_items=40, n_ratings=900)


# Catchers. Each answers whether it speaks up, given a way to plant the error.


@dataclass(frozen=True)
class Trial:
    """A trial of Stage 1 of `dpsr audit`, by its name."""

    name: str
    epsilon: float = 1.0
    runs: int = 1 << 14

    def __call__(self, error, tmp_path):
        with error():
            trial = next(one for one in stage1_trials("default", STARS, self.epsilon) if one.name == self.name)
            trial = replace(trial, runs=self.runs)
            return run(trial, NoiseSource.seeded(7), alpha=RISK).lower > trial.claim


@dataclass(frozen=True)
class Replay:
    """The same answers on other ratings."""

    epsilon: float = 5.0
    name: str = "the same answers on other ratings"

    def __call__(self, error, tmp_path):
        with error():
            return audit_replay([DPSR(self.epsilon, random_state=1)], people(), claim=self.epsilon).rejected


@dataclass(frozen=True)
class Keys:
    """Keys of several runs."""

    name: str = "keys of the operating system"

    def __call__(self, error, tmp_path):
        with error():
            return fresh_keys(1.0, runs=8).rejected


@dataclass(frozen=True)
class Refused:
    """The vault's own counter: the run ends before anything is drawn."""

    epsilon: float = 5.0
    name: str = "the vault refuses"

    def __call__(self, error, tmp_path):
        with error():
            _built.cache_clear()
            try:
                DPSR(self.epsilon).fit(people())
            except PrivacyError as refusal:
                return "Nothing was drawn" in str(refusal)
            finally:
                _built.cache_clear()
        return False


@dataclass(frozen=True)
class Verified:
    """The folder is written with the error and verified without it; auditing the folder finds it as well."""

    epsilon: float
    word: str
    name: str = "yes"

    def __call__(self, error, tmp_path):
        with error():
            folder = DPSR(self.epsilon).fit(people()).save(tmp_path / "r")
        said = [words for words in verify(folder).fails if self.word in words]
        try:
            load_release(folder)  # what `dpsr audit release/` does first
        except ReleaseError:
            return bool(said)
        assert not said
        return False


@dataclass(frozen=True)
class Test:
    """A test of the library, called."""

    __test__ = False

    path: str
    name: str
    options: tuple = ()

    def __call__(self, error, tmp_path):
        module = module_of_tests(self.path)
        with error(), pytest.MonkeyPatch.context() as patch:
            try:
                getattr(module, self.name)(**given(dict(self.options), module, patch, tmp_path))
            except (AssertionError, DpsrError, pytest.fail.Exception):
                return True
        return False


def given(options, module, patch, tmp_path):
    """What a test asks for by name, made as its own fixtures make it."""
    makers = {
        "ratings": people,
        "people": people,
        "tmp_path": lambda: tmp_path,
        "monkeypatch": lambda: patch,
        "division": lambda: module.division_of(people()),
        "contrasts": lambda: module.contrasts_of(people()),
        "raw": lambda: RawTable.of(people()),
        "silent": lambda: patch.setattr(
            "dpsr.privacy.vault.vault.discrete_laplace", lambda scale, n, noise: np.zeros(n, dtype=np.int64)
        ),
        "ledger": lambda: Ledger.create(str(tmp_path / "ledger.db"), "films", "3"),
        "fitted": lambda: {epsilon: DPSR(epsilon).fit(people()) for epsilon in (0.1, 1)},
    }
    (tmp_path / "work").mkdir(exist_ok=True)
    names = {name: default for name, default in options.items() if default is not ...}
    return names | {name: makers[name]() for name, default in options.items() if default is ...}


def called(path, name, *fixtures, **options):
    return Test(path, name, (*((fixture, ...) for fixture in fixtures), *options.items()))


VAULT, PIPELINE = "privacy/vault/test_vault.py", "pipeline/test_value_pipeline.py"
SAME_ANSWERS = called(
    PIPELINE,
    "test_given_the_same_answers_the_release_is_the_same_whatever_the_ratings",
    "people",
    "monkeypatch",
    epsilon=5.0,
    turns=1,
)
TWO_QUESTIONS = called(VAULT, "test_two_vaults_never_draw_the_same_noise_and_two_questions_neither", "ratings")
THE_TOTAL = called(
    VAULT, "test_the_total_moves_by_at_most_the_scales_width_and_the_ends_attain_it", "ratings", "silent"
)
VARIANCE = called(VAULT, "test_the_noise_has_the_variance_it_states")
CHANNELS = called(VAULT, "test_each_rating_passes_through_the_channel_chosen_for_it", "ratings")
SUMS = "noisy sums of an item and a user"

RAW = 'vault._raw["level"]'


@dataclass(frozen=True)
class Error:
    name: str
    edits: tuple
    test: Test | None = None
    audit: object = None
    verify: Verified | None = None


ERRORS = (
    Error(
        "clip removed from the window sums",
        (
            (
                Vault.divided_sums,
                "steps[window, block.columns[LEVEL]]",
                "np.rint((self.scale.values - centre) / step)[block.columns[LEVEL]]",
            ),
        ),
        called(
            VAULT,
            "test_window_sums_move_by_at_most_the_sensitivity_when_one_rating_changes",
            "ratings",
            "silent",
            item=8,
        ),
        Trial("noisy sums, window 2"),
    ),
    Error(
        "symbols of ratings that spent all on the sums",
        ((Vault._draw, "symbols[~division.asks(block)] = 0", "pass"),),
        called(
            VAULT,
            "test_a_rating_in_the_sums_alone_has_a_symbol_that_does_not_depend_on_it",
            "ratings",
            "division",
        ),
        Trial("divided sums and symbols", runs=1 << 17),
    ),
    Error(
        "ratings asked in every turn",
        ((Vault._draw, "symbols[~now(block)] = 0", "pass"),),
        called(VAULT, "test_in_turns_every_rating_is_asked_once_and_the_dearest_turn_is_what_they_cost", "ratings"),
        Trial("symbols in turns"),
    ),
    Error(
        "full weights of ratings that are asked one by one",
        (
            (vars(Division)["_whole"].fget, "[GRID, self.light]", "[GRID, GRID]"),
            (vars(DividedSumsPart)["light_epsilon"].fget, "self._moves(self.light)", "self._moves(self.light) / 8"),
        ),
        called(VAULT, "test_divided_sums_move_by_at_most_what_each_rating_pays_for", "ratings", "silent", "division"),
        Trial("divided sums and symbols", runs=1 << 17),
    ),
    Error(
        "sums over all ratings twice as heavy as paid for",
        ((Vault.divided_sums, "sign * clipped * pooled[codes]", "2 * sign * clipped * pooled[codes]"),),
        called(
            VAULT,
            "test_sums_over_all_ratings_are_paid_for_with_those_of_rows",
            "ratings",
            "silent",
            "division",
            "contrasts",
        ),
        Trial("noisy sums with signs", runs=1 << 10),
    ),
    Error(
        "windows of the second turn of sums twice as wide as paid for",
        (
            (Vault._windows, "limit = max(before.widest // 2, 1)", "limit = before.widest"),
            (Vault.divided_sums, "steps=before.steps + part.steps", "steps=before.steps * 2"),
            (Vault.divided_sums, "step=before.step + part.step", "step=(*before.step, part.step[0])"),
        ),
        called(
            VAULT,
            "test_sums_in_turns_move_by_at_most_what_each_rating_pays_for",
            "ratings",
            "silent",
            "division",
            "contrasts",
        ),
        Trial("noisy sums in turns"),
    ),
    Error(
        "half the sensitivity for the sum of all ratings",
        (
            (Vault.total, "np.ptp(steps)", "np.ptp(steps // 2)"),
            (Vault.total, "tuple(steps.tolist())", "tuple((steps // 2).tolist())"),
        ),
        THE_TOTAL,
        Trial("noisy sum of all ratings", runs=1 << 10),
        Verified(0.002, "its steps are the levels of the scale"),
    ),
    Error(
        "channel chosen by the raw level, in the vault",
        (
            (
                Vault.symbols,
                "at[np.minimum(block.columns[choice], last)]",
                "at[np.array(sorted(channels))[block.columns[LEVEL] % len(channels)]]",
            ),
        ),
        CHANNELS,
        Trial("one rating, several channels"),
    ),
    Error(
        "channel chosen by the raw level, in the pipeline",
        (
            (
                value._choose_channels,
                "choice = expected.nearest(block)",
                f"choice = {RAW}[block.ratings] * (len(CENTRES) // vault.scale.n_levels)",
            ),
        ),
        SAME_ANSWERS,
        Replay(),
    ),
    Error(
        "one noise for every block",
        ((Vault._draw, "stream, block.start)", "stream, 0)"),),
        called(
            "pipeline/test_paper_tables.py",
            "test_the_vault_draws_the_symbols_and_writes_the_receipt_of_the_in_memory_way",
            "ratings",
            "tmp_path",
            seed=0,
        ),
        Trial("two ratings in two blocks"),
    ),
    Error(
        "one noise for every fetch of random bits",
        ((Sampler.draw, "start + at, symbols[piece]", "start, symbols[piece]"),),
        called("privacy/channels/test_channel.py", "test_a_rating_gets_the_same_symbol_however_the_work_is_cut"),
        Trial("two ratings far apart", runs=1 << 18),
    ),
    Error(
        "noise of the sums 5 % too small",
        ((Vault._release, "Fraction(part.noise_scale)", "Fraction(part.noise_scale) * 19 / 20"),),
        None,
        Trial(SUMS, epsilon=3.0, runs=1 << 20),
    ),
    Error(
        "noise of the sums 10 % too small",
        ((Vault._release, "len(values), self._noise)", "len(values), self._noise) * 9 // 10"),),
        VARIANCE,
        Trial(SUMS, epsilon=3.0, runs=1 << 18),
    ),
    Error(
        "noise on one side only",
        (
            (
                Vault._release,
                "values + discrete_laplace(scale, len(values), self._noise)",
                "values + np.abs(discrete_laplace(scale, len(values), self._noise))",
            ),
        ),
        VARIANCE,
        Trial(SUMS),
    ),
    Error(
        "one noise for an item's sum and a user's",
        (
            (
                Vault._release,
                "discrete_laplace(scale, len(values), self._noise)",
                "np.resize(discrete_laplace(scale, max(len(values) // 2, 1), self._noise), len(values))",
            ),
        ),
        None,
        Trial(SUMS),
    ),
    Error(
        "long requests for noise begin again",
        ((discrete_laplace, "words(ask, used)", "words(ask, 0)"),),
        called(
            "privacy/noise/test_laplace.py",
            "test_the_values_are_those_of_one_long_read_however_it_is_cut",
            "monkeypatch",
            scale=Fraction(5, 2),
            words_per_draw=10,
            chunk=1 << 14,
        ),
        Trial(SUMS, runs=1 << 16),
    ),
    Error(
        "one stream of noise for all questions",
        ((NoiseSource.stream, "self._asked += 1", "self._asked = 1"),),
        TWO_QUESTIONS,
        Trial("one rating in two releases"),
    ),
    Error(
        "one key for all releases",
        ((vars(NoiseSource)["system"].__func__, "os.urandom(_KEY)", 'b"k" * _KEY'),),
        TWO_QUESTIONS,
        Keys(),
    ),
    Error(
        "a seed that calls itself private",
        ((vars(NoiseSource)["seeded"].__func__, "cls(False,", "cls(True,"),),
        called("privacy/vault/test_privatise.py", "test_a_seed_means_not_private", "ratings"),
    ),
    Error(
        "histogram priced as if one count moved",
        (
            (Vault.histogram, "laplace_scale(2, epsilon)", "laplace_scale(1, epsilon)"),
            (vars(HistogramPart)["sensitivity"].fget, "return 2 if", "return 1 if"),
        ),
        called(VAULT, "test_a_histogram_moves_by_two_when_one_rating_changes", "ratings", "silent"),
        Trial("noisy histogram of levels", runs=1 << 10),
        Verified(1.0, "level histogram: epsilon"),
    ),
    Error(
        "receipt for half of what was drawn",
        (
            (
                Vault._charge,
                "self._parts = [*others, part]",
                "self._parts.append(type(part)(part.name, str(2 * Fraction(part.noise_scale)), *list("
                "part.__dict__.values())[2:7]) if isinstance(part, DividedSumsPart) else part)",
            ),
        ),
        None,
        Trial("noisy sums, window 3"),
    ),
    Error(
        "last level forgotten",
        (
            (Vault.total, "np.ptp(steps)", "np.ptp(steps[:-1])"),
            (Vault.total, "tuple(steps.tolist())", "tuple(steps[:-1].tolist())"),
        ),
        THE_TOTAL,
        Trial("noisy sum of all ratings", epsilon=3.0, runs=1 << 13),
        Verified(0.002, "as many levels as the scale"),
    ),
    Error(
        "item sums with a trace of raw ones",
        (
            (
                value.ask_sums,
                "Heard(turn.rows, view, items.values / half",
                "Heard(turn.rows, view, items.values / half + 1e-9 * "
                f"np.bincount(vault._raw.mask.items, {RAW})[turn.rows.items]",
            ),
        ),
        SAME_ANSWERS,
        Replay(1.0),
    ),
    Error(
        "a raw count in the certificate",
        (
            (
                Vault.certificate,
                "public=public_facts(self.census, self.scale)",
                'public={**public_facts(self.census, self.scale), "max_ratings_per_user": '
                'int((self._raw["level"] == 4).sum())}',
            ),
        ),
        SAME_ANSWERS,
        Replay(1.0),
        Verified(1.0, "max_ratings_per_user is"),
    ),
    Error(
        "raw ratings released",
        ((DPSR.fit_ratings, "contents.model, table[RELEASED],", "contents.model, ratings.values,"),),
        called(PIPELINE, "test_the_released_table_is_private_values_and_not_the_ratings", "fitted", "people"),
        None,
        Verified(1.0, "what the model predicts"),
    ),
    Error(
        "shares of the budget that add up to more",
        ((value.ask_sums, "epsilon=spend,", "epsilon=1.1 * spend,"),),
        None,
        Refused(1.0),
    ),
    Error(
        "the same, and a vault that does not count",
        (
            (value.ask_sums, "epsilon=spend,", "epsilon=1.1 * spend,"),
            (Vault._charge, "> Fraction(self.epsilon)", "> 2 * Fraction(self.epsilon)"),
        ),
        called(VAULT, "test_overspending_is_refused_before_anything_is_drawn", "ratings"),
        None,
        Verified(1.0, "exceeds the"),
    ),
    Error(
        "table rounded to the other side",
        ((response_table, "low = ceil(", "low = int("),),
        called(
            "privacy/channels/test_optimal.py", "test_a_table_one_unit_less_noisy_would_be_too_dear", m=3, epsilon=0.7
        ),
        Refused(5.0),
    ),
    Error(
        "levels of a channel in reverse",
        ((Vault.symbols, "shape[1]] = channel.weights", "shape[1]] = channel.weights[::-1]"),),
        CHANNELS,
    ),
    Error(
        "rare symbols never drawn",
        (
            (
                Sampler._draw_piece,
                "stream.fork().words(len(rows), start) >> np.uint64(64 - _TAIL_BITS)",
                "np.zeros(len(rows), np.uint64)",
            ),
        ),
        called(
            "privacy/channels/test_channel.py",
            "test_the_guide_table_decides_exactly_as_the_cumulative_integers_would",
            channel=laplace(Scale(0, 100), 3.0),
        ),
    ),
    Error(
        "answers of a killed run drawn again",
        ((Vault._release, "noisy = self._journal.answered(part, about) if self._journal else None", "noisy = None"),),
        called("privacy/vault/test_journal.py", "test_answers_are_given_once_whatever_the_key", "raw", "tmp_path"),
        Replay(1.0),
    ),
    Error(
        "ledger charged after the noise",
        (
            (
                publish._charged,
                "charge = _charge(",
                "_made(estimator, ratings, journal, None); charge = _charge(",
            ),
        ),
        called(
            "cli/test_release_ledger.py",
            "test_no_noise_is_drawn_before_the_ledger_has_the_charge",
            "ratings",
            "tmp_path",
            "ledger",
            "monkeypatch",
        ),
    ),
)

CATCHES = [
    pytest.param(error, getattr(error, kind), id=f"{error.name}: {kind}")
    for error in ERRORS
    for kind in ("test", "audit", "verify")
    if getattr(error, kind) is not None
]


@pytest.mark.parametrize(("error", "catcher"), CATCHES)
def test_a_planted_error_is_caught_and_sound_code_is_not_accused(error, catcher, tmp_path):
    (tmp_path / "sound").mkdir()
    assert not catcher(nullcontext, tmp_path / "sound")
    assert catcher(lambda: planted(*error.edits), tmp_path)


def row(error):
    """The line of the document that says what catches an error."""
    test = "" if error.test is None else f"`{error.test.name}`"
    audit, verified = ("" if one is None else one.name for one in (error.audit, error.verify))
    return f"| {error.name} | {test} | {audit} | {verified} |"


def test_the_document_has_exactly_this_table():
    text = DOCUMENT.read_text("utf-8")
    found = re.findall(r"^\|.*\|$", text.split("## What catches which error")[1].split("\n## ")[0], flags=re.MULTILINE)
    assert found[2:] == [row(error) for error in ERRORS]


def test_every_error_has_a_name_of_its_own_and_something_that_catches_it():
    assert all(error.test or error.audit or error.verify for error in ERRORS)
    assert len({error.name for error in ERRORS}) == len(ERRORS)
