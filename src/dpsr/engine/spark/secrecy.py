"""Whether a Spark session may be trusted with a noise key, and which settings make it so.

A pass that draws noise travels as a function that holds the key. Spark writes such functions down where nobody sees it:
broadcasts go through a file if they are large and are spilled to disk when memory is short, and between machines
everything crosses the network. Whoever finds the key can subtract the noise. So

    spark.io.encryption.enabled=true                                      whatever is written to disk, on any master
    spark.authenticate=true and spark.network.crypto.enabled=true         whatever crosses the network, on a cluster;
      or spark.ssl.rpc.enabled=true                                       the key of the first setting crosses it too

What counts is the context that runs: a session may claim settings that came too late for it.
"""

from __future__ import annotations

from typing import Any

from dpsr.errors import PrivacyError

_DISK = "spark.io.encryption.enabled"
_CRYPTO = ("spark.authenticate", "spark.network.crypto.enabled")
_TLS = "spark.ssl.rpc.enabled"

ENCRYPTED = {_DISK: "true"}
"""What a session of our own is started with: it is local, and nothing crosses a network."""


def check_encrypts(context: Any) -> None:
    """Refuse a context that would write or send a noise key in the clear."""
    missing = missing_settings(context)
    if missing:
        raise PrivacyError(
            "this Spark session would write or send the noise key in the clear, and whoever finds it can subtract the "
            f"noise. Nothing was drawn. Start the session with {' and '.join(f'{name}=true' for name in missing)}, or "
            "let dpsr start one."
        )


def missing_settings(context: Any) -> list[str]:
    """The settings that are to be made true before a key may travel."""
    conf = context.getConf()

    def on(name: str) -> bool:
        return str(conf.get(name, "false")).strip().lower() == "true"

    missing = [] if on(_DISK) else [_DISK]
    if not _is_local(context.master) and not on(_TLS):
        missing += [name for name in _CRYPTO if not on(name)]
    return missing


def _is_local(master: str) -> bool:
    """Driver and tasks in one process: `local`, `local[4]`; a `local-cluster` has several."""
    return master == "local" or master.startswith("local[")
