"""The stages of the default pipeline at the level of values: post-processing of noisy answers, no raw values."""
