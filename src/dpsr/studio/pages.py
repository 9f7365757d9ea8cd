"""Each page: which commands are asked, and what its template is told. No arithmetic, nothing written but by `DONE`."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, RedirectResponse, Response

from dpsr.certify.amounts import belief_at_most, epsilon_text, factor_text, percent_up
from dpsr.certify.normal_price import chance_beyond
from dpsr.database import is_address
from dpsr.errors import DpsrError
from dpsr.studio import commands
from dpsr.studio.commands import Choices
from dpsr.studio.frontier import HEIGHT, WIDTH, forecast
from dpsr.studio.processes import Outcome, ask
from dpsr.studio.runs import BusyError
from dpsr.studio.sources import columns_of, rating_files, release_folders, tables_of
from dpsr.web.guard import Refusal

if TYPE_CHECKING:
    from dpsr.studio.app import Page, Visit

SCALES = {
    "1:5:1": "1 to 5 stars",
    "0.5:5:0.5": "half a star to 5, in halves",
    "1:10:1": "1 to 10",
    "0:10:1": "0 to 10",
    "0:1:1": "thumb down or up",
}
UNITS = {
    "value": ("How much somebody liked something", "Who rated what is public. The release has a row for each rating."),
    "rating": ("That a rating exists", "The release holds what is known about items, and nobody."),
    "user": ("A whole person, with all their ratings", "The release holds what is known about items, and nobody."),
}


def start(visit: Visit) -> Response:
    """Pick a file, a table or a release."""
    return visit.render(
        "start.html.jinja",
        files=rating_files(),
        releases=release_folders(),
        runs=visit.studio.runs.all[::-1],
        folder=Path.cwd().name,
    )


def choose_columns(visit: Visit) -> Response:
    """Which columns were taken for what, how many there are, and the scale."""
    chosen, problem, names, header = visit.chosen, "", [], True
    tables: list[str] = []
    try:
        if is_address(chosen.source):
            tables = tables_of(chosen.source)
            names = columns_of(chosen.source, chosen.table) if chosen.table in tables else []
        else:
            found = visit.studio.answers.of(commands.columns(chosen), chosen.source)
            problem, record = found.words, found.record or {"names": [], "header": True, "taken": {}}
            names, header = record["names"], record["header"]
            chosen = _with_taken(chosen, record["taken"])
    except DpsrError as error:
        problem = str(error)
    whole = bool(names and chosen.user and chosen.item and chosen.rating)
    shape = visit.studio.answers.of(commands.describe(chosen), chosen.source) if whole else None
    return visit.render(
        "columns.html.jinja",
        c=chosen,
        problem=problem or (shape.words if shape else ""),
        names=names,
        header=header,
        tables=tables,
        shape=shape.record if shape else None,
        scales=SCALES,
        files=[entry for entry in rating_files() if entry.source != chosen.source],
        command=commands.shown(commands.describe(chosen)) if whole else "",
    )


def choose_price(visit: Visit) -> Response:
    """Unit and epsilon by looking, and what the ledger has left."""
    chosen = visit.chosen
    frontier = forecast(chosen, visit.studio.answers)
    return visit.render(
        "choose.html.jinja",
        frontier=frontier,
        width=WIDTH,
        height=HEIGHT,
        units=UNITS,
        ledger=_ledger(chosen),
    )


def review(visit: Visit) -> Response:
    """The whole order in words and as a command, before anything is spent."""
    chosen = visit.chosen
    return visit.render(
        "review.html.jinja",
        command=commands.shown(commands.release(chosen)),
        ledger=_ledger(chosen),
        units=UNITS,
        order=secrets.token_hex(16),
        exists=Path(chosen.out or ".").exists(),
        **_odds(chosen.epsilon, "" if chosen.unit == "value" else chosen.delta),
    )


def begin_ledger(visit: Visit) -> Response:
    """A budget, by a click."""
    chosen, budget = visit.chosen, visit.form.get("budget", "")
    done = ask(commands.begin_ledger(chosen.ledger, chosen.dataset, budget, chosen.unit, chosen.delta))
    if done.refused:
        raise Refusal(422, done.words)
    return RedirectResponse(f"/choose?{chosen.query()}", 303)


def begin_release(visit: Visit) -> Response:
    """The release, by a click; the same order again leads to the same run."""
    chosen, order = visit.chosen, visit.form.get("order", "")
    if len(order) != 32:
        raise Refusal(422, "An order must have its number. Load the page before again and click there.")
    try:
        run = visit.studio.runs.start(order, commands.release(chosen), chosen.out, chosen.ledger)
    except BusyError as error:
        raise Refusal(409, str(error)) from None
    return RedirectResponse(f"/run?id={run.id}", 303)


def show_run(visit: Visit) -> Response:
    """How far a release is; once it is done, the release itself."""
    run = visit.studio.runs.find(visit.query.get("id", ""))
    if run is None:
        raise Refusal(404, "This studio knows no such run. A release it made is listed on the first page.")
    if run.done:
        chosen = Choices(out=run.folder, ledger=run.ledger)
        return RedirectResponse(f"/release?{chosen.query()}", 303)
    return visit.render(
        "run.html.jinja",
        run=run,
        stages=run.progress(),
        command=commands.shown(run.arguments),
        complaint="" if run.running else run.complaint(),
    )


def run_state(visit: Visit) -> Response:
    """The same for the script of the page."""
    run = visit.studio.runs.find(visit.query.get("id", ""))
    if run is None:
        raise Refusal(404, "This studio knows no such run.")
    return JSONResponse({"running": run.running, "stages": run.progress()})


def show_release(visit: Visit) -> Response:
    """What was released: its promise, its verification, its card."""
    chosen = visit.chosen
    arguments = commands.verify(chosen.out, chosen.ledger)
    found = ask(arguments)
    return visit.render(
        "release.html.jinja",
        found=found.record,
        problem=found.words,
        command=commands.shown(arguments),
        ledger=_ledger(chosen) if chosen.ledger else None,
        price=epsilon_text,
        **_odds(*(str((found.record or {}).get(name) or "") for name in ("epsilon", "delta"))),
    )


def show_card(visit: Visit) -> Response:
    """The card of a folder that holds together, in a page that can reach nothing: not even this studio."""
    from dpsr.report.page import page_policy, source
    from dpsr.studio import tryout

    try:
        card = tryout.opened(visit.chosen.out).card
    except DpsrError as error:
        raise Refusal(422, str(error)) from None
    if card is None:
        raise Refusal(404, "A release must have a card to be shown, and this one has none. Draw it again: dpsr card.")
    policy = page_policy(source("card.css"), source("card.js"))
    headers = {"content-security-policy": f"{policy}; sandbox allow-scripts; frame-ancestors 'self'"}
    return Response(card, headers=headers, media_type="text/html")


def try_out(visit: Visit) -> Response:
    """Rate some things, see your list."""
    from dpsr.studio import tryout

    try:
        release = tryout.loaded(visit.chosen.out)
        given = {name.removeprefix("rate:"): text for name, text in visit.form.items() if name.startswith("rate:")}
        rated = {name: float(text) for name, text in given.items() if text}
        listed = tryout.suggestions(release, rated) if rated else []
        words = (visit.form or visit.query).get("words", "")[:100]
        found = tryout.items_to_rate(release, words)
        known = {thing.id for thing in found}
        kept = [tryout.RatableItem(name, _called(release, name)) for name in rated if name not in known]
    except ValueError:
        raise Refusal(422, "A rating must be one that the page offers. Go back and choose again.") from None
    except DpsrError as error:
        raise Refusal(422, str(error)) from None
    return visit.render(
        "try.html.jinja",
        things=[*kept, *found],
        rated={name: f"{value:g}" for name, value in rated.items()},
        listed=listed,
        steps=tryout.levels_of(release),
        words=words,
        wanted=tryout.WANTED,
    )


def _called(release: Any, item: str) -> str:
    from dpsr.studio import tryout

    return next((thing.name for thing in tryout.items_to_rate(release, item) if thing.id == item), item)


def _with_taken(chosen: Choices, taken: dict[str, str | None]) -> Choices:
    """Columns that were not named are those that were taken."""
    named = {role: getattr(chosen, role) or taken.get(role) or "" for role in ("user", "item", "rating")}
    return Choices.of({**chosen.hidden(), **named})


def _ledger(chosen: Choices) -> dict[str, Any] | None:
    """What a ledger has, with the budget that would be charged; None without one."""
    if not chosen.ledger:
        return None
    found: Outcome = ask(commands.show_ledger(chosen.ledger))
    budgets = found.record or []
    own = [one for one in budgets if one["dataset"] == chosen.dataset]
    return {
        "words": found.words,
        "missing": found.refused and not is_address(chosen.ledger) and not Path(chosen.ledger).exists(),
        "budgets": budgets,
        "budget": own[0] if own else (budgets[0] if len(budgets) == 1 else None),
        "command": commands.shown(commands.show_ledger(chosen.ledger)),
    }


def _odds(epsilon: str, delta: str) -> dict[str, str]:
    """What an epsilon means, in words, and with a delta, how often that does not hold; nothing for what is none."""
    try:
        value = float(epsilon)
        if not 0 < value < 700:
            raise ValueError
        beyond = epsilon_text(chance_beyond(value, float(delta)), 2) if delta else ""
    except (ValueError, DpsrError):
        return {"factor": "", "guess": "", "beyond": ""}
    return {"factor": factor_text(value), "guess": percent_up(belief_at_most(0.5, value)), "beyond": beyond}


SHOWN: dict[str, Page] = {
    "/columns": choose_columns,
    "/choose": choose_price,
    "/review": review,
    "/run": show_run,
    "/run/state": run_state,
    "/release": show_release,
    "/card": show_card,
    "/try": try_out,
}
DONE: dict[str, Page] = {"/begin-ledger": begin_ledger, "/begin-release": begin_release, "/try/list": try_out}
