"""Ratios within one run, never a test. `make bench` prints them."""
