"""Kernels in other processes: they are found there by name, and come from the cache."""

import pickle

import numpy as np
import pytest
from numba import njit
from pyspark import cloudpickle

from dpsr.value.kernels import add_normal_equations


def nested():
    """A function as a pass over blocks has them: inside another, with a kernel of its module."""

    def task(*arguments):
        return add_normal_equations(*arguments)

    return task


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps], ids=["pickle", "as Spark does it"])
def test_a_kernel_is_sent_by_its_name_and_is_the_same_there(dumps):
    """By its source it would be another one, without a cache, compiled by every process of a cluster."""
    assert pickle.loads(dumps(add_normal_equations)) is add_normal_equations
    assert len(dumps(add_normal_equations)) < 200


def test_a_function_that_uses_a_kernel_takes_its_name_along():
    there = pickle.loads(cloudpickle.dumps(nested()))
    assert there.__globals__["add_normal_equations"] is add_normal_equations


def test_a_kernel_that_no_module_names_is_sent_as_numba_does_it():
    twice = njit(lambda x: 2 * x)
    assert pickle.loads(cloudpickle.dumps(twice))(np.float64(21)) == 42
