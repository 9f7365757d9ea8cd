"""Does a release serve any learner? Learners people use, trained on raw and on released tables, tested on raw ratings.

Everything here compares with raw held-out ratings: its numbers are **not private**.
"""
