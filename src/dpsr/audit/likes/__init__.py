"""Audits where nobody rates: canary people with interactions of their own, who are there or not by the toss of a coin.

`questions` attacks single questions to the vaults of interactions, `planted` holds errors that this must notice,
`auditing` adds what must make no difference and one run of the whole pipeline, and puts them together.
"""
