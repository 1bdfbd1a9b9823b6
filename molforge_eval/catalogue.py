"""The one table of finding codes: rule, level, severity, and the words that explain a code.

A check says what it saw and where; everything that is the same for all findings of a code stands in
`data/findings.toml`, which also drives `molforge-eval explain` and `docs/findings.md`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import Any, Literal

import orjson

from molforge_env.errors import UsageError
from molforge_env.frozen import FrozenModel
from molforge_eval.findings import Finding, Place, Severity

Level = Literal["E0", "E1", "E2", "E3", "E4"]
Rule = Literal["R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8"]
LEVELS: tuple[Level, ...] = ("E0", "E1", "E2", "E3", "E4")

SHOWN_CHARACTERS = 120
_LONGEST_CODE = 60


class CodeEntry(FrozenModel):
    """One code of the table."""

    code: str
    rule: Rule
    level: Level
    """The evidence level that an error of this code denies."""
    severity: Severity
    old_severity: Severity | None = None
    """That in a run of format version 0, where it is another: how its script fills its files is not known in full."""
    meaning: str
    reason: str
    """Why the rule exists."""
    example: str
    mend: str
    cases: tuple[str, ...] = ()

    def severity_in(self, run_format: int | None) -> Severity:
        """Return the severity in a run of a format version."""
        return self.old_severity if run_format == 0 and self.old_severity is not None else self.severity


@cache
def codes() -> Mapping[str, CodeEntry]:
    """Read the table, in its own order."""
    text = resources.files("molforge_eval").joinpath("data", "findings.toml").read_text(encoding="utf-8")
    return {code: CodeEntry(code=code, **body) for code, body in tomllib.loads(text).items()}


def entry_of(code: str) -> CodeEntry:
    """Look a code up.

    Raises:
        UsageError: The table has no such code.
    """
    entry = codes().get(code)
    if entry is None:
        near = get_close_matches(code[:_LONGEST_CODE], codes(), n=3)
        hint = f"The nearest: {', '.join(near)}. " if near else ""
        raise UsageError(
            f"finding code {code!r} is not in the table",
            where="finding codes",
            mend=f"{hint}`molforge-eval explain` without a code lists them all.",
        )
    return entry


def finding(
    code: str,
    what: str,
    *,
    file: str | None = None,
    line: int | None = None,
    pointer: str | None = None,
    episode: str | None = None,
    step: int | None = None,
) -> Finding:
    """Make a finding; severity and mend come from the table.

    Args:
        code: A code of the table.
        what: One sentence with the value that was seen.
        file: Path inside the run directory.
        line: Line of the file, from 1.
        pointer: JSON pointer or column.
        episode: Episode id.
        step: Step counter of the episode.
    """
    entry = entry_of(code)
    place = Place(
        file=None if file is None else printable(file),
        line=line,
        pointer=None if pointer is None else printable(pointer),
        episode=None if episode is None else printable(episode),
        step=step,
    )
    return Finding(code=code, severity=entry.severity, where=place, what=printable(what), mend=entry.mend)


def printable(text: str) -> str:
    """Escape every character that could move a cursor, hide text or break an encoder.

    >>> len(printable("a" + chr(27) + "b"))
    8
    """
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else _escaped(mark) for mark in text)


def seen(value: Any) -> str:
    """Spell a value for a message: JSON, cut to a readable length."""
    try:
        text = orjson.dumps(value).decode()
    except (TypeError, ValueError):
        # Lone surrogates and integers over 64 bits have no JSON spelling of ours.
        text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}… ({len(text)} characters)"


def short(sha256: str) -> str:
    """Cut a hash to what a person compares."""
    return f"{sha256[:12]}…"


def _escaped(mark: str) -> str:
    point = ord(mark)
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"
