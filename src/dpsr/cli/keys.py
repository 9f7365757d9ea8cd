"""`dpsr keys`: make keys, and sign finished releases with them."""

from __future__ import annotations

import getpass
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsr.cli.help import Application
from dpsr.cli.rows import Json
from dpsr.cli.terminal import out
from dpsr.quoting import for_terminal

if TYPE_CHECKING:
    from dpsr.release.keys import SigningKey

app = Application(help="Keys that sign releases, and signatures.")

PASSPHRASE = "DPSR_KEY_PASSPHRASE"
"""Where a script leaves the passphrase of a key; people are asked for it."""


@app.command(epilog="Example: dpsr keys new --out officer")
def new(
    out_file: Annotated[Path, typer.Option("--out", help="Name of the key; its public half is NAME.pub beside it.")],
    no_passphrase: Annotated[
        bool,
        typer.Option("--no-passphrase", help="Keep the key without a passphrase: whoever reads the file can sign."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Make an Ed25519 key that signs releases: a private half to keep, a public half to hand out."""
    from dpsr.release.keys import new_key, public_name

    public = new_key(out_file, None if no_passphrase else _chosen_passphrase())
    if as_json:
        record = {"private": str(out_file), "public": str(public_name(out_file)), "fingerprint": public.fingerprint}
        typer.echo(json.dumps(record, indent=2))
        return
    out.print(
        f"Keep [bold]{for_terminal(out_file, 400)}[/bold] to yourself; hand out "
        f"[bold]{for_terminal(public_name(out_file), 400)}[/bold], and tell people its fingerprint by another way:\n"
        f"{public.fingerprint}",
        soft_wrap=True,
    )


@app.command(epilog="Example: dpsr keys sign release/ --key officer")
def sign(
    release: Annotated[Path, typer.Argument(help="A release folder you have looked at.")],
    key: Annotated[Path, typer.Option(help="Your private key, as `dpsr keys new` made it.")],
    as_json: Json = False,
) -> None:
    """Sign a finished release: everything in it is checked first, and what is not private is not signed."""
    from dpsr.pipeline.signing import sign_release

    made = sign_release(release, open_key(key))
    if as_json:
        typer.echo(json.dumps({"manifest_sha256": made.manifest, "signer": made.key.fingerprint}, indent=2))
        return
    out.print(
        f"Signed. SHA-256 of the manifest: {made.manifest}\nSigned by the key {made.key.fingerprint}", soft_wrap=True
    )


def open_key(path: Path) -> SigningKey:
    """A private key; the passphrase comes from the environment, or is asked for."""
    from dpsr.release.keys import PassphraseNeededError, read_key

    try:
        return read_key(path, os.environ.get(PASSPHRASE))
    except PassphraseNeededError:
        if not sys.stdin.isatty():
            raise
        return read_key(path, getpass.getpass("Passphrase of the key: "))


def _chosen_passphrase() -> str:
    """From the environment, or typed twice."""
    from dpsr.errors import SignatureError

    if PASSPHRASE in os.environ:
        return os.environ[PASSPHRASE]
    if not sys.stdin.isatty():
        raise SignatureError(
            f"a new key needs a passphrase, and nobody can be asked here. Set {PASSPHRASE}, or say --no-passphrase."
        )
    chosen = getpass.getpass("A passphrase for the new key: ")
    if getpass.getpass("The same again: ") != chosen:
        raise SignatureError("the two passphrases differ. Nothing was written; try again.")
    return chosen
