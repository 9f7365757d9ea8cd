"""Audits at the units `user` and `rating`: canary people who are in the data, or are not, by the toss of a coin.

`crowd` makes tables with canaries, `questions` attacks single questions to the vault, `one_run` a whole pipeline run
once, `membership` tells who was there, `invariance` is what must not make any difference, `planted` holds errors that
all of this must notice, `auditing` puts them together; `audit.bounds` turns counts into lower bounds.
"""
