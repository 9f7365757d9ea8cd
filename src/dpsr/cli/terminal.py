"""What the terminal shows: one console for results, one for complaints, and the words of the promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

if TYPE_CHECKING:
    from dpsr.certify import Certificate

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def complain(message: str) -> None:
    """One sentence on stderr."""
    err.print(f"[red]error:[/red] {escape(message)}", soft_wrap=True)


def promise(epsilon: float) -> str:
    """What epsilon promises, in words, before anything is spent."""
    from dpsr.certify.odds import belief_at_most, factor_text, percent_up

    return (
        f"Protects the [bold]value[/bold] of every single rating at epsilon = {epsilon:g}: whatever somebody believed "
        f"about one rating, its odds change by at most a factor {factor_text(epsilon)} (a 50 % guess becomes at "
        f"most {percent_up(belief_at_most(0.5, epsilon))}).\n"
        "Does not hide who rated what, how often, or when: that is public in this release."
    )


def verdict(certificate: Certificate) -> str:
    """What was spent, in words, afterwards."""
    public = certificate.public
    heavy = public["max_ratings_per_user"]
    colour, word = ("green", "private") if certificate.private else ("red", "NOT PRIVATE")
    delta = f", delta = {certificate.delta:.3g}" if certificate.delta else ""
    lines = [
        f"[{colour}]{word}[/{colour}]: exact epsilon = {certificate.epsilon:.6g}{delta} per rating "
        f"(asked: {certificate.nominal:g}).",
        f"A person with k ratings is protected at k times that: {certificate.epsilon_for_user(heavy):.4g} for the "
        f"heaviest of {public['n_users']:,} users ({heavy:,} ratings).",
        *(f"[red]{escape(reason)}[/red]" for reason in certificate.reasons),
    ]
    return "\n".join(lines)
