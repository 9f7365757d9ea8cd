"""Every method side by side: one protocol, one tidy table, the unit of protection on every line."""

from dpsr.evaluate.studies.benchmark.study import benchmark_study, requested_benchmark

__all__ = ["benchmark_study", "requested_benchmark"]
