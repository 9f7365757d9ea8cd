"""What attackers reach against each method's output, beside what epsilon allows.

    guessing      how well scores tell two cases apart, and the most that epsilon allows
    outputs       values, membership and reconstruction, from what a method puts out
    likes         a person and an interaction, from lists and from the item side
    mechanisms    the best guess there is at a known table; the leaking mean of the paper's Stage 1

Attacks read raw ratings to judge guesses: their numbers are **not private**.
"""
