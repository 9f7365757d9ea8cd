"""Everything that turns a secret into an answer with a price.

channels   finite randomisers of one rating, as integer tables that know their price
noise      randomness, and exact noise for sums
vault      raw ratings behind a counter: the only place that puts questions to them
ledger     one budget per data set, kept across runs and people
"""
