"""Settings have scikit-learn manners: what `clone`, `get_params` and `set_params` do to an estimator of its own."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from dpsr import DPSR
from dpsr.data import realistic
from dpsr.errors import ParameterError
from dpsr.pipeline.paper import PaperDPSR

BOTH = [DPSR(2.5, delta=1e-6), DPSR.paper(0.5, alpha=0.3, random_state=3)]


def twin(model):
    """A scikit-learn estimator with the same constructor: what the library's own base class would answer."""
    kind = type(model)
    return type(kind.__name__, (BaseEstimator,), {"__init__": kind.__init__})(**model.get_params())


@pytest.mark.parametrize("model", BOTH)
def test_settings_are_those_scikit_learn_would_find(model):
    assert model.get_params() == model.get_params(deep=False) == twin(model).get_params()


@pytest.mark.parametrize("model", BOTH)
def test_a_clone_has_the_settings_and_nothing_else(model):
    model = model.unfitted()
    model.release_ = "learned"
    for copy in (clone(model), model.unfitted()):
        assert copy is not model
        assert type(copy) is type(model)
        assert copy.get_params() == model.get_params()
        assert not hasattr(copy, "release_")


def test_it_is_shown_as_one_would_write_it():
    assert repr(DPSR(2.5, delta=1e-6)) == "DPSR(epsilon=2.5, delta=1e-06)"
    assert repr(DPSR()) == "DPSR(epsilon=1.0)"
    paper = DPSR.paper(0.5, alpha=0.3, random_state=3)
    assert eval(repr(paper), {"PaperDPSR": PaperDPSR}).get_params() == paper.get_params()


def test_settings_change_by_name_and_unknown_ones_are_refused():
    model = DPSR(1.0)
    assert model.set_params(epsilon=3.0) is model
    assert model.epsilon == 3.0
    with pytest.raises(ParameterError, match="settings epsilon, unit, delta, items, random_state, found epsilom"):
        model.set_params(epsilom=2.0)


def test_importing_the_pipelines_does_not_import_scikit_learn():
    """Nor pandas, which it would bring: a hundred megabytes."""
    code = (
        "import sys, dpsr.pipeline.publish, dpsr.pipeline.out_of_core; print({'sklearn', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("seed", ["a", 1.5, np.random.default_rng(0)])
@pytest.mark.parametrize("estimator", [DPSR(1.0), DPSR(1.0, unit="user", delta=1e-5), DPSR.paper(1.0)])
def test_a_seed_that_is_no_whole_number_is_refused_in_a_sentence(estimator, seed):
    ratings = realistic(0, n_users=8, n_items=8, n_ratings=30)
    with pytest.raises(ParameterError, match="a seed is a whole number"):
        estimator.set_params(random_state=seed).fit(ratings)
