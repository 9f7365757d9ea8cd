"""Predictions and lists: for one user, for somebody new, for everybody."""
