"""The number book of a packet: every number that is printed, with its id, its formula and where its rows stand.

The words of a number (what it is called, how it is made) stand in `number_words.json` of the templates, under its id or
under a pattern of ids. A number that nobody described is refused: it could not be traced.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Annotated, NamedTuple

import orjson
from pydantic import Field

from molforge_env.frozen import FrozenModel
from molforge_eval.records.fields import Sha256
from molforge_eval.report.number_rules import needs_of
from molforge_eval.report.numerals import ABSENT
from molforge_eval.shipped import template_folder

NumberId = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(\.[A-Za-z0-9_:-]+)+$", max_length=200)]


class Source(FrozenModel):
    """Where the rows of a number stand."""

    file: str
    """Path in the run, or what else the rows come from."""
    part: str
    """Column and lines of a log, or JSON pointer."""
    sha256: Sha256 | None
    """Hash of the file as it was read; `None` for a table that ships with the product."""


class Number(FrozenModel):
    """One number as it stands in the packet."""

    id: NumberId
    """Dotted name, stable for ever; `molforge-report trace` follows it to its rows."""
    name: str
    """What a reader calls it."""
    value: float | int | None
    """Unrounded; `None` when it is not known."""
    text: str
    """As printed."""
    formula: str
    """How it is made, in words."""
    sources: tuple[Source, ...]
    """The files and parts of them that it is read from."""
    reason: str | None
    """Why the value is `None`."""
    needs: tuple[NumberId, ...] = ()
    """The numbers that it is made from, by `data/number_rules.toml`; its own rows stand in `sources`."""


class NumberWords(NamedTuple):
    """How a number is called and made."""

    name: str
    formula: str


class NumberBook:
    """Numbers in the order in which they were put down.

    Args:
        hashes: SHA-256 of each file of the run, by path.
    """

    def __init__(self, hashes: Mapping[str, str]) -> None:
        """Start empty."""
        self._hashes = hashes
        self._numbers: dict[str, Number] = {}

    @property
    def numbers(self) -> tuple[Number, ...]:
        """Everything that was put down."""
        return tuple(
            number.model_copy(update={"needs": needs_of(number.id, self._numbers)}) for number in self._numbers.values()
        )

    def put(
        self,
        number_id: str,
        value: float | None,
        text: str,
        *sources: tuple[str, str],
        reason: str | None = None,
    ) -> str:
        """Put a number down and return its id.

        Args:
            number_id: Dotted name, stable for ever.
            value: The unrounded value; `None` when it is not known.
            text: The value as printed.
            sources: File and part for each place the number comes from.
            reason: Why the value is `None`.

        Raises:
            KeyError: `number_words.json` has no words for this id.
            ValueError: The id is taken, or a value is `None` without a reason.
        """
        if number_id in self._numbers:
            raise ValueError(f"number {number_id} was put down twice")
        if value is not None and not math.isfinite(value):
            value, text, reason = None, ABSENT, "the number leaves the range of floats"
        if value is None and reason is None:
            raise ValueError(f"number {number_id} is unknown without a reason")
        words = words_of(number_id)
        self._numbers[number_id] = Number(
            id=number_id,
            name=words.name,
            value=value,
            text=text,
            formula=words.formula,
            sources=tuple(Source(file=file, part=part, sha256=self._hashes.get(file)) for file, part in sources),
            reason=None if value is not None else reason,
        )
        return number_id


def words_of(number_id: str) -> NumberWords:
    """Find the words of a number; what stands under each `*` of its pattern fills `{0}`, `{1}` and so on.

    Raises:
        KeyError: No entry and no pattern fits.

    >>> words_of("score.level_0_easy.before").name
    'level_0_easy, before, sampled'
    """
    pattern, words = _entry_of(number_id)
    marks = zip(number_id.split("."), pattern.split("."), strict=True)
    wild = [_wild(part, mark) for part, mark in marks if "*" in mark]
    return NumberWords(words.name.format(*wild), words.formula.format(*wild))


def pattern_of(number_id: str) -> str:
    """Find the id or pattern under which the words of a number stand.

    Raises:
        KeyError: No entry and no pattern fits.

    >>> pattern_of("score.level_0_easy.before"), pattern_of("score.mean.before")
    ('score.*.before', 'score.mean.before')
    """
    return _entry_of(number_id)[0]


def _entry_of(number_id: str) -> tuple[str, NumberWords]:
    for pattern, words in _entries():
        if fnmatchcase(number_id, pattern) and pattern.count(".") == number_id.count("."):
            return pattern, words
    raise KeyError(number_id)


def _wild(part: str, mark: str) -> str:
    head, _, tail = mark.partition("*")
    return part[len(head) : len(part) - len(tail)]


@cache
def _entries() -> tuple[tuple[str, NumberWords], ...]:
    loaded = orjson.loads((template_folder() / "number_words.json").read_bytes())
    return tuple((pattern, NumberWords(words["name"], words["formula"])) for pattern, words in loaded.items())
