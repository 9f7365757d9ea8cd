"""Help as a page of plain text that fits 80 columns: what it does, what it takes, one example that runs."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from dpsr.cli.terminal import complain
from dpsr.quoting import quoted

UsageError: Any = typer.BadParameter.__mro__[1]
"""What the command framework raises for a command line that is not one."""

_NAMES = 26
"""Columns for the names of options; longer ones have a line of their own."""

_WIDEST = 100

_PARSER_WORDS = re.compile(r"Value error, |, unable to parse string as an? \w+")
"""What the framework's parser says about itself, and not about what was typed."""

Rows = list[tuple[str, str]]
Function = TypeVar("Function", bound=Callable[..., Any])


class Command(TyperCommand):
    """A command whose help is a page of text."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        arguments = [one for one in self.params if one.param_type_name == "argument"]
        options = [one for one in self.get_params(ctx) if one.param_type_name == "option"]
        usage = " ".join([ctx.command_path, *(_argument(one) for one in arguments), "[OPTIONS]"])
        required = [one for one in options if one.required]
        sections = {
            "Arguments": [(_argument(one), _meaning(one)) for one in arguments],
            "Required": [(_names(one), _meaning(one)) for one in required],
            "Options": [(_names(one), _meaning(one)) for one in options if not one.required],
        }
        formatter.write(page(usage, self.help or "", sections, self.epilog or ""))


class Group(TyperGroup):
    """Commands in the order in which somebody meets them, under what they are for."""

    order: ClassVar[Sequence[str]] = ()

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands, key=lambda name: self.order.index(name) if name in self.order else len(self.order))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, Rows] = {}
        for name in self.list_commands(ctx):
            command = self.commands[name]
            heading = getattr(command, "rich_help_panel", None)
            heading = heading if isinstance(heading, str) else "Commands"
            sections.setdefault(heading, []).append((name, _summary(command)))
        options = [one for one in self.get_params(ctx) if one.param_type_name == "option"]
        sections["Options"] = [(_names(one), _meaning(one)) for one in options]
        formatter.write(page(f"{ctx.command_path} COMMAND", self.help or "", sections, self.epilog or ""))


class Application(typer.Typer):
    """Commands that explain themselves this way, `-h` included."""

    def __init__(self, *, cls: type[Group] = Group, **settings: Any) -> None:
        names = {"help_option_names": ["-h", "--help"]}
        super().__init__(
            cls=cls, context_settings=names, no_args_is_help=True, pretty_exceptions_enable=False, **settings
        )

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Function], Function]:
        """As typer's, with help as here."""
        return super().command(name, cls=Command, **settings)


def show_misuse(error: Any) -> None:
    """One sentence on stderr with a command line that is right; for a bare command its help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.message.rstrip())
        return
    example = getattr(error.ctx.command, "epilog", None) if error.ctx else None
    advice = example.splitlines()[0] if example else f"See: {error.ctx.command_path if error.ctx else 'dpsr'} -h"
    message = _PARSER_WORDS.sub("", error.format_message()).strip().rstrip(".")
    message += _found(error.__cause__, message)
    complain(f"{message}{'' if message.endswith('?') else '.'} {advice}")


def _found(cause: Any, message: str) -> str:
    """What was typed, where the framework's parser says only what it should be."""
    details = getattr(cause, "errors", None)
    typed = details()[0].get("input") if callable(details) else None
    return f", found {quoted(typed)}" if isinstance(typed, str) and quoted(typed) not in message else ""


def page(usage: str, about: str, sections: dict[str, Rows], example: str) -> str:
    """All of it; without colour where nobody looks."""
    width = min(shutil.get_terminal_size((80, 24)).columns, _WIDEST)
    lines = [f"{_heading('Usage:')} {usage}", ""]
    for paragraph in about.split("\n\n"):
        lines += [*textwrap.wrap(" ".join(paragraph.split()), width), ""]
    for heading, rows in sections.items():
        if rows:
            lines += [_heading(f"{heading}:"), *_table(rows, width), ""]
    return "\n".join([*lines, *example.splitlines()]).rstrip() + "\n"


def _heading(text: str) -> str:
    return typer.style(text, bold=True)


def _table(rows: Rows, width: int) -> Iterator[str]:
    column = min(max(len(name) for name, _ in rows), _NAMES) + 4
    for name, meaning in rows:
        wrapped = textwrap.wrap(meaning, width - column, break_long_words=False, break_on_hyphens=False) or [""]
        if len(name) > column - 4:
            yield f"  {name}"
            name = ""
        yield f"  {name:<{column - 2}}{wrapped[0]}".rstrip()
        yield from (" " * column + line for line in wrapped[1:])


def _argument(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name or "").upper()
    name = f"{name}..." if parameter.nargs != 1 else name
    return name if parameter.required else f"[{name}]"


def _names(parameter: Any) -> str:
    names = ", ".join(sorted(parameter.opts, key=len))
    if getattr(parameter, "is_flag", False) or parameter.name == "help":
        return names
    return f"{names} {parameter.metavar or parameter.opts[0].lstrip('-').upper().replace('-', '_')}"


def _meaning(parameter: Any) -> str:
    """What it is for, what it may be, and what it is otherwise."""
    default = parameter.default
    words: list[str] = [getattr(parameter, "help", None) or "Show this page."]
    if isinstance(default, Enum):
        words.append(f"One of {', '.join(str(one.value) for one in type(default))}.")
        words.append(f"[default: {default.value}]")
    elif isinstance(default, str | int | float | Path) and not isinstance(default, bool) and str(default):
        words.append(f"[default: {default}]")
    if getattr(parameter, "multiple", False):
        words.append("[may be repeated]")
    if parameter.envvar:
        words.append(f"[env: {parameter.envvar}]")
    return " ".join(words)


def _summary(command: Any) -> str:
    return command.short_help or " ".join((command.help or "").split("\n\n")[0].split()).rstrip(".")
