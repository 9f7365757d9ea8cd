"""The paper's printed figures against each other."""

from __future__ import annotations

import pytest

from dpsr.evaluate.studies.paper import printed
from dpsr.evaluate.studies.paper.printed import recheck_printed_tests


def test_table_1_is_complete():
    assert len(printed.TABLE_1) == 16
    assert all(set(row) == set(printed.METRICS) for row in printed.TABLE_1.values())


@pytest.mark.parametrize("epsilon", printed.TABLE_2)
@pytest.mark.parametrize(("place", "reference"), [(0, "Laplace"), (1, "Gaussian")])
def test_table_2_follows_from_table_1_up_to_rounding(epsilon, place, reference):
    """Catches a slip of transcription: three printed decimals move the percentage by less than 0.11."""
    ours, theirs = (printed.TABLE_1[epsilon, method]["rmse"].mean for method in ("DPSR", reference))
    assert 100 * (1 - ours / theirs) == pytest.approx(printed.TABLE_2[epsilon][place], abs=0.11)


def test_the_headline_follows_from_table_1():
    none, dpsr = printed.TABLE_1[None, "No Privacy"]["rmse"].mean, printed.TABLE_1[1.0, "DPSR"]["rmse"].mean
    assert 100 * (1 - dpsr / none) == pytest.approx(10.56, abs=0.05)


def test_the_abstracts_range_leaves_out_two_of_five_budgets():
    gains = [laplace for laplace, _ in printed.TABLE_2.values()]
    assert sum(5.57 <= gain <= 9.23 for gain in gains) == 3


def test_the_printed_p_values_belong_to_an_unpaired_test_with_eight_degrees_of_freedom():
    for test in recheck_printed_tests():
        if test.t_printed is not None and test.epsilon != 1.0:
            assert test.p_unpaired == pytest.approx(test.p_printed, abs=5e-5)
            assert test.p_paired > 2 * test.p_printed
        if test.epsilon == 1.0:
            assert test.p_unpaired < 0.0001 < 0.001 < test.p_paired


def test_the_printed_t_values_are_those_of_the_means_and_deviations_of_table_1():
    for test in recheck_printed_tests():
        if test.t_printed is not None:
            assert test.t_from_table == pytest.approx(test.t_printed, rel=0.03)


def test_two_of_the_five_printed_improvements_are_not_significant_by_the_papers_own_test():
    doubtful = {test.epsilon for test in recheck_printed_tests() if test.p_from_table >= 0.05}
    assert doubtful == {0.1, 10.0}
