"""Inference where people are protected and nobody rates: popularity and taste from noisy counts and second moments.

Everything here reads noisy answers and public facts alone.
"""
