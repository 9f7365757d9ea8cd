"""`dpsr explain`: epsilon as odds, guesses and sums."""

from __future__ import annotations

import json
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from dpsr.certify.amounts import as_written, epsilon_text, percent_down, percent_up
from dpsr.certify.certificate import unit_names
from dpsr.cli.rows import Json
from dpsr.cli.terminal import out
from dpsr.cli.units import DeltaOption, Unit, UnitOption
from dpsr.errors import ParameterError
from dpsr.quoting import for_terminal

if TYPE_CHECKING:
    from dpsr.pipeline.explain import Explanation

EXAMPLE = "Example: dpsr explain --epsilon 1, or of a release: dpsr explain --release release/"


def explain(
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget.")] = None,
    scale: Annotated[
        str | None, typer.Option(help="The rating scale, LOW:HIGH:STEP, to see how often a rating is guessed right.")
    ] = None,
    unit: UnitOption = None,
    delta: DeltaOption = None,
    release: Annotated[Path | None, typer.Option(help="Explain a release folder instead.")] = None,
    as_json: Json = False,
) -> None:
    """Say what an epsilon means: odds, guesses, and what the ratings of one person add up to."""
    from dpsr.pipeline.explain import explain as of_epsilon
    from dpsr.pipeline.explain import explain_release
    from dpsr.release import load_release
    from dpsr.types import Scale

    if release is not None and epsilon is None and scale is None:
        told = explain_release(load_release(release))
    elif release is None and epsilon is not None:
        protects = (unit or Unit.value).value
        told = of_epsilon(None if scale is None else Scale.parse(scale), epsilon, unit=protects, delta=delta)
    else:
        raise ParameterError("explain needs an --epsilon (and perhaps a --scale), or a --release and neither of them.")
    if as_json:
        typer.echo(json.dumps(told.to_dict(), indent=2))
        return
    for reason in told.reasons:
        out.print(f"[red]NOT PRIVATE[/red]: {for_terminal(reason, 400)}. What follows is no promise.")
    if told.unit == "value":
        _show(told)
    else:
        _show_people(told)


_ABOUT = {
    "user": ("whether somebody is among the people at all", "Whether one person is there", "what they rated or did"),
    "rating": ("whether one rating or interaction exists", "Whether one row is there", "its value or weight"),
}


def _show_people(told: Explanation) -> None:
    assert told.chance_beyond is not None
    about, title, known = _ABOUT[told.unit]
    price = f"epsilon = {epsilon_text(told.epsilon, 6)}, delta = {epsilon_text(told.delta)}"
    out.print(
        f"{price}: whatever somebody believes about {about}, the release changes the odds by at most a factor "
        f"{_factor(told.odds)}, except with a chance of at most {epsilon_text(told.chance_beyond, 2)}. That is more "
        "than delta, which bounds by how much probabilities pass that factor, not how often. Where that is known "
        f"anyway, {known} is protected at more than twice epsilon: see each unit."
    )
    beliefs = Table("belief before", "at least after", "at most after", title=title, title_justify="left")
    for belief in told.beliefs:
        beliefs.add_row(_percent(belief.prior), percent_down(belief.least), percent_up(belief.most))
    out.print(beliefs)
    if told.guess_there is not None:
        out.print(
            f"Whether {_one(told)} is there, decided by a fair coin, is guessed "
            f"right at most {percent_up(told.guess_there)} of the time: noise here is normal, and tells less than any "
            "noise of this epsilon and delta might."
        )
    out.print(_unit_table(told))
    out.print(
        f"It is as if of {floor(1 / as_written(told.delta)):,} such promises one were not kept: delta belongs well "
        "below one over the number of people. The release holds nobody; a list by dpsr personalise goes to its own "
        "person alone. Several releases add up."
    )


def _one(told: Explanation) -> str:
    if told.unit == "user":
        return "somebody"
    return "an interaction" if told.likes else "a rating"


def _unit_table(told: Explanation) -> Table:
    """At most what each unit costs."""
    shown = Table("what is to be hidden", "epsilon at most", "delta", title="Each unit", title_justify="left")
    names = unit_names(likes=told.likes)
    for unit, price in told.units.items():
        cells = ("not protected", "") if price is None else (epsilon_text(price.epsilon), epsilon_text(price.delta))
        shown.add_row(names[unit], *cells)
    return shown


def _show(told: Explanation) -> None:
    delta = f". It is as if that held but for a chance of {epsilon_text(told.delta)}" if told.delta else ""
    out.print(
        f"epsilon = {epsilon_text(told.epsilon, 6)}: whatever somebody believes about the value of one rating, the "
        f"release changes the odds by at most a factor {_factor(told.odds)}{delta}."
    )
    beliefs = Table("belief before", "at least after", "at most after", title="One rating", title_justify="left")
    for belief in told.beliefs:
        beliefs.add_row(_percent(belief.prior), percent_down(belief.least), percent_up(belief.most))
    out.print(beliefs)
    if told.n_levels is not None:
        _show_guesses(told)
    persons = Table(
        "ratings of one person", "epsilon together", "odds change by", "50 % becomes at most", title_justify="left",
        title="One person: what they all add up to",
    )  # fmt: skip
    for person in told.persons:
        persons.add_row(
            f"{person.ratings:,}", epsilon_text(person.epsilon), _factor(person.odds), percent_up(person.most)
        )
    out.print(persons)
    out.print(_unit_table(told))
    out.print("Who rated what is public at every epsilon. Several releases of the same ratings add up, too.")
    if told.n_levels is None:
        out.print("How often a rating is guessed right depends on the rating form: add --scale 1:5:1, or what it is.")


def _show_guesses(told: Explanation) -> None:
    assert told.guess_before is not None
    assert told.guess_at_most is not None
    guesses = Table("who guesses", "right", title=f"Guessing one of {told.n_levels} levels", title_justify="left")
    guesses.add_row("from the scale alone, no release", _percent(told.guess_before))
    if told.guess_channel is not None:
        guesses.add_row("from this rating's own noisy value, best guess", percent_up(told.guess_channel))
    guesses.add_row("from anything of this epsilon, at most", percent_up(told.guess_at_most))
    out.print(guesses)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _factor(odds: float) -> str:
    return epsilon_text(odds) if odds < 1e9 else "over 1e9"
