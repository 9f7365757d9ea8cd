"""Certificates written by hand, for a ledger that judges them by what they say."""

from dpsr.certify import Certificate, Part


def certificate(epsilon=1.0, *, delta=0.0, private=True, name="ratings"):
    part = Part(name=name, mechanism="by hand", epsilon=epsilon, delta=delta)
    reasons = () if private else ("the noise came from a seed",)
    return Certificate(
        nominal=epsilon,
        parts=(part,),
        public={},
        randomness="system" if private else "seeded",
        private=private,
        reasons=reasons,
    )
