"""The ablation: every recipe keeps the budget, every idea changes the fit, and the table says by how much."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpsr import DPSR
from dpsr.data import realistic
from dpsr.engine.raw import RawTable
from dpsr.errors import ParameterError
from dpsr.evaluate.measure import METHOD
from dpsr.evaluate.pipelines import RECIPES
from dpsr.evaluate.protocol import ERRORS_ONLY
from dpsr.evaluate.report.tidy import tidy
from dpsr.evaluate.runner.jobs import Job
from dpsr.evaluate.sets import RatingSet
from dpsr.evaluate.studies.ablation import VARIANTS, ablation_study, ablation_table
from dpsr.evaluate.studies.study import run_study
from dpsr.types import Scale

SCALES = {"tiny": Scale(1, 5)}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    pq.write_table(realistic(0, n_users=120, n_items=90, n_ratings=4000).to_arrow(), folder / "tiny.parquet")
    return folder


def test_every_variant_keeps_the_budget_and_changes_the_fit(data, tmp_path):
    found = run_study(ablation_study(data, scales=SCALES, epsilons=(3.0,)), tmp_path, workers=2)
    rows = found.rows["ablation"].to_pylist()
    assert [row["method"] for row in rows] == list(VARIANTS.values())
    assert all(row["exact_epsilon"] <= 3.0 for row in rows)
    errors = {name: row["rmse"] for name, row in zip(VARIANTS, rows, strict=True)}
    assert errors.pop("cautious start only") == errors["full"], "tastes show in this mask: no start is bold"
    assert errors.pop("all sums at once") == errors["full"], "where nearly all ratings are asked, sums have one turn"
    for name in ("sums read once", "noise of sums read as normal"):
        assert errors.pop(name) == errors["full"], "there sums are but a start"
    assert len(set(errors.values())) == len(errors), "every other idea changes the fit"
    text = found.report.read_text("utf-8")
    assert "NOT PRIVATE" in text
    assert all(f"| {name} |" in text for name in VARIANTS)
    assert len((tmp_path / "ablation.csv").read_text().splitlines()) == 1 + len(VARIANTS)


def test_all_sums_at_once_are_another_fit_at_the_same_price_where_sums_are_all_that_is_asked():
    table = RawTable.of(realistic(0))
    full, at_once = (
        DPSR(1.0, random_state=0).fit_table(table, recipe=recipe) for recipe in (None, RECIPES["all sums at once"])
    )
    assert [part.name for part in full.certificate.parts] == ["level histogram", "window sums"]
    prices = [made.certificate.epsilon for made in (full, at_once)]
    assert prices == pytest.approx([1.0, 1.0], rel=1e-6)
    assert max(prices) <= 1
    windows = [len(made.certificate.parts[1].to_record()["steps"]) for made in (full, at_once)]
    assert windows[0] > windows[1] == 1


def test_sums_that_are_read_otherwise_are_the_same_sums_and_another_fit():
    table = RawTable.of(realistic(0))
    full, once, normal = (
        DPSR(1.0, random_state=0).fit_table(table, recipe=recipe)
        for recipe in (None, RECIPES["sums read once"], RECIPES["noise of sums read as normal"])
    )
    assert full.certificate.parts == once.certificate.parts == normal.certificate.parts
    pairs = np.arange(20), np.arange(20)
    found = [one.model.predict(*pairs) for one in (full, once, normal)]
    assert all(not np.array_equal(found[a], found[b]) for a, b in ((0, 1), (0, 2), (1, 2)))


def test_all_variants_get_the_same_noise(data):
    jobs = ablation_study(data, scales=SCALES, epsilons=(1.0, 3.0), seeds=(0, 1)).jobs
    noise = {(job.epsilon, job.seed): set() for job in jobs}
    for job in jobs:
        noise[job.epsilon, job.seed].add(job.noise_seed)
    assert all(len(seeds) == 1 for seeds in noise.values())
    assert len(set.union(*noise.values())) == 4


def test_the_table_says_how_much_worse_a_variant_is_and_nothing_of_an_equal_one():
    numbers = {"full": 2.0, "without factors": 3.0, "without pairs": 2.0}
    tiny = RatingSet("tiny")
    runs = [
        (Job(METHOD, tiny, VARIANTS[name], 1.0, 0, 0, 0, ERRORS_ONLY), [{"rmse": error}])
        for name, error in numbers.items()
    ]
    table = ablation_table(tidy(METHOD, runs), "tiny")
    assert table.rows == (("full", "2.0000"), ("without factors", "3.0000 (+50.0)"), ("without pairs", "2.0000"))


@pytest.mark.parametrize("wrong", [{"variants": ["without luck"]}, {"variants": []}, {"seeds": ()}, {"epsilons": ()}])
def test_an_empty_or_unknown_request_is_refused(data, wrong):
    with pytest.raises(ParameterError, match="needs a variant"):
        ablation_study(data, scales=SCALES, **wrong)
