"""What `dpsr release` says: before anything is spent, and afterwards, to people and to scripts."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from dpsr.cli.terminal import promise, receipt

if TYPE_CHECKING:
    from pathlib import Path

    from dpsr.pipeline.account import Account
    from dpsr.pipeline.publish import Published, RawRows

NO_LIST = (
    "[yellow]No list of items was declared[/yellow]: only items of many people can be named, for a part of the "
    "budget. Where the list is no secret, --items FILE names all of them for nothing."
)
NO_LEDGER = (
    "No ledger: nobody adds this up with other releases of the same data. To keep count: dpsr ledger init --help."
)


def preview(name: str, taken: str, table: RawRows, estimator: Any, account: Account | None) -> str:
    """What is there, what is promised, and what it will cost, before anything is spent."""
    from dpsr.engine.raw import InteractionTable, RawInteractions
    from dpsr.pipeline.people import ratings_outside
    from dpsr.pipeline.publish import census_of

    census, lines, likes = census_of(table), [], isinstance(table, InteractionTable | RawInteractions)
    thing = "interactions" if likes else "ratings"
    counts = f"{census.n_ratings:,} {thing}, {census.n_users:,} users, {census.n_items:,} items."
    if estimator.unit == "value":
        lines.append(f"{escape(name)}: {counts}")
    else:
        lines.append(f"{escape(name)}: {counts} [yellow]For your eyes only: not in the release.[/yellow]")
        if lost := ratings_outside(census, estimator.items):
            rows = f"{'[red]All[/red] ' if lost == census.n_ratings else ''}{lost:,} {thing}"
            lines.append(f"{rows} are of items outside the catalogue and are left out (for your eyes only).")
    lines += [escape(taken)] if taken else []
    if estimator.as_published:
        lines.append(as_published(estimator.epsilon, estimator.alpha))
    else:
        lines.append(promise(estimator.epsilon, estimator.unit, estimator.delta, timed=census.timed, likes=likes))
    if estimator.unit != "value" and estimator.items is None:
        lines.append(NO_LIST)
    return "\n".join([*lines, NO_LEDGER if account is None else price(account)])


def as_published(nominal: float, alpha: float) -> str:
    """The paper's Stage 1 promises nothing at the epsilon that was asked for."""
    from dpsr.certify.amounts import epsilon_text
    from dpsr.certify.unproved import published_price

    true = epsilon_text(published_price(nominal, alpha))
    return (
        f"[red]Does not keep epsilon = {nominal:g}[/red]: Stage 1 as published costs {true} in the worst case. "
        "The release will say NOT PRIVATE; it is for experiments. Who rated what is in it as it is."
    )


def price(account: Account) -> str:
    """What the ledger has, and will have."""
    from dpsr.certify.amounts import written_down

    budget, name = account.budget, f"[bold]{escape(account.dataset)}[/bold] in {escape(str(account.ledger))}"
    if account.paid is not None:
        return f"Goes on from a run that was charged to {name}: nothing more is charged."
    amounts = [("epsilon", budget.left_epsilon, budget.epsilon, account.price)]
    if budget.delta:
        amounts.append(("delta", budget.left_delta, budget.delta, account.price_delta))
    left = "; ".join(
        f"{what} = {written_down(now)} is left of {written_down(total)}, {written_down(now - price)} will be"
        for what, now, total, price in amounts
    )
    return f"Charges {name}: {left}. A charge is never refunded."


def report(done: Published, account: Account | None) -> str:
    """What it cost, and where it is."""
    from dpsr.certify.amounts import written_down

    lines = [receipt(done.certificate)]
    if account is not None and done.budget is not None:
        budget = done.budget
        left = f"epsilon = {written_down(budget.left_epsilon)} left of {written_down(budget.epsilon)}"
        if budget.delta:
            left += f" and delta = {written_down(budget.left_delta)} left of {written_down(budget.delta)}"
        lines.append(f"The ledger has {left} for {escape(account.dataset)}.")
    use = "for experiments only, not to be shared"
    if done.certificate.private and done.certificate.unit == "value":
        use = "ratings.parquet is the table to share"
    elif done.certificate.private:
        use = "it knows nobody and may be shared; serve people with dpsr personalise"
    if done.certificate.unit != "value":
        lines.append(f"Items that have a name, and may be on lists: {_named(done.folder):,}.")
    lines.append(f"Release written to [bold]{escape(str(done.folder))}[/bold]: {use}.")
    lines.append(f"SHA-256 of its manifest, which stands for the whole folder: {done.manifest_sha256}")
    return "\n".join(lines)


def _named(folder: Path) -> int:
    import pyarrow.parquet as pq

    from dpsr.release.folder.layout import ITEMS

    return int(pq.read_metadata(folder / ITEMS).num_rows)


def record(done: Published, account: Account | None) -> dict[str, Any]:
    """The same for scripts."""
    from dpsr.cli.ledger import budget_record

    certificate = done.certificate
    return {
        "folder": str(done.folder),
        "private": certificate.private,
        "reasons": list(certificate.reasons),
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "unit": certificate.unit,
        "nominal": certificate.nominal,
        "manifest": done.manifest_sha256,
        "certificate": hashlib.sha256(certificate.to_json().encode()).hexdigest(),
        "public": certificate.public,
        "charge": None if account is None else account.charge_id,
        "budget": None if done.budget is None else budget_record(done.budget),
    }
