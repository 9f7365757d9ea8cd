"""What the terminal shows: a console for results, one for complaints, stages as they begin, words of the promise."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from dpsr.cli.interrupts import check
from dpsr.quoting import for_terminal, without_controls

if TYPE_CHECKING:
    from dpsr.certify import Certificate


class _CleanConsole(Console):
    """A console on which no text steers the terminal: whatever a command forgot to clean is cleaned here.

    Markup cannot be told apart here from a command's own; text from strangers goes through `quoting.for_terminal`.
    """

    def render_str(self, text: str, **settings: Any) -> Text:
        return super().render_str(without_controls(text), **settings)

    def on_broken_pipe(self) -> None:
        """Nobody reads on (`| head`): the command goes on unseen and ends with its own answer, not with a no."""
        self.quiet = True
        discard(self.file)


class _Asides(_CleanConsole):
    """Stages and complaints. A run that has been charged is not lost because nobody can be told how far it is."""

    def print(self, *things: Any, **settings: Any) -> None:
        try:
            super().print(*things, **settings)
        except OSError:
            self.on_broken_pipe()


def discard(stream: IO[str]) -> None:
    """From here on nothing written to the stream can fail, not even what is still in its buffer when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


out = _CleanConsole(highlight=False, emoji=False)
err = _Asides(stderr=True, highlight=False, emoji=False)


def complain(message: str) -> None:
    """One sentence on stderr."""
    err.print(Text.assemble(("error:", "red"), " ", without_controls(message)), soft_wrap=True)


def line(word: str, style: str, text: str) -> None:
    """One finding: a word in colour, and text as it is."""
    out.print(Text.assemble((word, style), " " * (7 - len(word)), without_controls(text)), soft_wrap=True)


@contextmanager
def showing_stages() -> Iterator[None]:
    """While this is open, stderr shows every stage that is announced: live on a terminal, one line each in a log."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from dpsr.pipeline.estimator import listening

    columns = (SpinnerColumn(finished_text="[green]✓[/green]"), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, disable=not err.is_terminal) as bar:

        def begin(stage: str) -> None:
            check()
            for task in bar.tasks:
                bar.update(task.id, total=1, completed=1)
            if err.is_terminal:
                bar.add_task(stage, total=None)
            else:
                err.print(f"{stage} ...")

        with listening(begin):
            yield
        for task in bar.tasks:
            bar.update(task.id, total=1, completed=1)


TIMED = (
    "[yellow]Timestamps are released as they are[/yellow]: with them a person is found who told somebody when they "
    "watched or bought what."
)


_PROTECTED = {
    "user": ("[bold]every person[/bold], with all their ratings,", "whether somebody is there", "what they rated"),
    "rating": ("[bold]that a rating exists[/bold]", "whether one rating exists", "its value"),
}
_PROTECTED_LIKES = {
    "user": ("[bold]every person[/bold], with everything they did,", "whether somebody is there", "what they did"),
    "rating": ("[bold]that an interaction exists[/bold]", "whether one interaction exists", "its weight"),
}
"""What is protected, what the odds are about, and what is left to hide where that is known: it costs more than twice
epsilon, because one contribution is replaced by another."""


def promise(
    epsilon: float, unit: str = "value", delta: float | None = None, *, timed: bool = False, likes: bool = False
) -> str:
    """What epsilon promises, in words, before anything is spent; `timed` if the release holds timestamps."""
    from dpsr.certify.amounts import belief_at_most, epsilon_text, factor_text, percent_up
    from dpsr.certify.normal_price import chance_beyond

    if unit != "value":
        assert delta is not None
        thing, about, known = (_PROTECTED_LIKES if likes else _PROTECTED)[unit]
        return (
            f"Protects {thing} at epsilon = {epsilon:g}, delta = {epsilon_text(delta)}: whatever somebody believed "
            f"about {about}, its odds change by at most a factor {factor_text(epsilon)} (a 50 % guess becomes at most "
            f"{percent_up(belief_at_most(0.5, epsilon))}), except with a chance of at most "
            f"{epsilon_text(chance_beyond(epsilon, delta), 2)}. Where that is known anyway, {known} is protected at "
            "more than twice epsilon.\n"
            "The release holds what is known about items. No user, no row and no count of anybody is in it."
        )
    return (
        f"Protects the [bold]value[/bold] of every single rating at epsilon = {epsilon:g}: whatever somebody believed "
        f"about one rating, its odds change by at most a factor {factor_text(epsilon)} (a 50 % guess becomes at "
        f"most {percent_up(belief_at_most(0.5, epsilon))}).\n"
        "Does not hide who rated what and how often: that is public in this release. "
        + (TIMED if timed else "When they did is left out (--timestamps keeps it).")
    )


def receipt(certificate: Certificate) -> str:
    """What was spent, in words, afterwards."""
    from dpsr.certify.amounts import epsilon_text

    public = certificate.public
    colour, word = ("green", "private") if certificate.private else ("red", "NOT PRIVATE")
    delta = f", delta = {epsilon_text(certificate.delta)}" if certificate.delta else ""
    asked = "nothing was asked for" if certificate.nominal is None else f"asked: {certificate.nominal:g}"
    epsilon = epsilon_text(certificate.epsilon, 6)
    exact = f"[{colour}]{word}[/{colour}]: exact epsilon = {epsilon}{delta} per {certificate.per}"
    if certificate.unit != "value":
        lines = [f"{exact} ({asked}).", *(f"  {words}" for words in _other_units(certificate))]
        return "\n".join([*lines, *(f"[red]{for_terminal(reason, 400)}[/red]" for reason in certificate.reasons)])
    heavy = public["max_ratings_per_user"]
    together = epsilon_text(certificate.epsilon_for_user(heavy))
    lines = [
        f"{exact} ({asked}).",
        f"A person with k ratings is protected at k times that: {together} for the "
        f"heaviest of {public['n_users']:,} users ({heavy:,} ratings).",
        *(f"[red]{for_terminal(reason, 400)}[/red]" for reason in certificate.reasons),
    ]
    return "\n".join(lines)


def _other_units(certificate: Certificate) -> list[str]:
    """What the same release costs for the units it was not made for."""
    from dpsr.certify.amounts import epsilon_text
    from dpsr.certify.certificate import unit_names

    names, said = unit_names(likes=certificate.likes), []
    for unit, price in certificate.protection.items():
        if unit != certificate.unit:
            cost = "not protected" if price is None else f"epsilon = {epsilon_text(price.epsilon)} at the same delta"
            said.append(f"{names[unit]}: {cost}.")
    return said
