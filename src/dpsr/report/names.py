"""Ids on a page: text by strangers, made visible and short.

Markup is escaped by the template. What escaping cannot help is done here: characters that are not printable (direction
overrides, line separators, control characters) are spelled out, so that no id can disguise itself or its neighbours,
and long ids are cut, with more of them in the tooltip.
"""

from __future__ import annotations

from typing import NamedTuple

MAX_SHOWN, MAX_TITLE = 40, 400
_JOINER = "\u200d"
"""Joins emoji into one; invisible alone, harmless, and without it a family falls apart."""


class Name(NamedTuple):
    """An id as shown, and what its tooltip says (empty if all of it is shown)."""

    text: str
    title: str


def shown(identifier: object) -> Name:
    """An id fit for a page.

    >>> shown("abc"), shown("a\\u202eb").text, len(shown("x" * 10_000).text)
    (Name(text='abc', title=''), 'a⟨U+202E⟩b', 40)
    """
    full = str(identifier)
    spelled = _spelled(full[:MAX_TITLE])
    if len(spelled) <= MAX_SHOWN and len(full) <= MAX_TITLE:
        return Name(spelled or "(empty)", "")
    more = f"… ({len(full):,} characters)" if len(full) > MAX_TITLE else ""
    return Name(spelled[: MAX_SHOWN - 1] + "…", spelled + more)


def _spelled(text: str) -> str:
    return "".join(c if c.isprintable() or c == _JOINER else f"⟨U+{ord(c):04X}⟩" for c in text)
