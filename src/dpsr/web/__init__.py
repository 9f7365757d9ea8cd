"""What the two web edges share: an extra, an address, connections with limits, a guard, pages.

`serve` answers for a release, `studio` leads a curator to one. Neither is imported unless its command is given.
"""

from __future__ import annotations

from importlib import import_module

from dpsr.errors import ParameterError

NEEDED = ("starlette", "uvicorn")


def require_web(command: str) -> None:
    """Refuse, with what to install, where the extra is not there."""
    for name in NEEDED:
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            raise ParameterError(
                f"dpsr {command} needs a web server, and {name} is not installed. Install dpsr[web]: pip install "
                "'dpsr[web]'."
            ) from error
