"""The answers of one run, given again: a question that is not the one that was asked is noticed."""

import numpy as np
import pytest

from dpsr.audit.replay import Tape
from dpsr.certify.parts import HistogramPart


@pytest.mark.parametrize(("bins", "about"), [((0, 1), "some"), ((0, 1), "others"), ((1, 0), "some")])
def test_a_tape_notices_another_question_and_one_about_others(bins, about):
    tape = Tape()
    assert tape.answered(HistogramPart("level histogram", "4", (0, 1)), "some") is None
    tape.keep(HistogramPart("level histogram", "4", (0, 1)), np.array([5, 7]), "some")
    answer = tape.rewind().answered(HistogramPart("level histogram", "4", bins), about)
    np.testing.assert_array_equal(answer, [5, 7])
    assert tape.same_questions == (bins == (0, 1) and about == "some")
