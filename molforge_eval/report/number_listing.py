"""The table that says how each number is made: on a page a row for each, on paper one for those that are made alike."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from molforge_eval.report.number_book import Number, pattern_of, words_of

_UNLISTED = "seed."
"""Numbers that a table of their own shows by their ids; a row says how they are made and does not repeat them."""


class Member(NamedTuple):
    """One number of a row."""

    mark: str
    """What its id has where the ids of the row differ."""
    number: Number


class NumberRow(NamedTuple):
    """One number, or several that are made alike."""

    label: str
    """The id, or what the ids have in common with a star for the rest."""
    name: str
    formula: str
    members: tuple[Member, ...]
    is_listed: bool
    """The values of several are listed."""


def rows_of(numbers: Sequence[Number], placed: Collection[object], *, on_paper: bool) -> list[NumberRow]:
    """Give the numbers as rows: a page lists all of them, a paper those that it prints.

    Args:
        numbers: Every number.
        placed: Ids that the document prints.
        on_paper: Numbers that are made alike share a row.
    """
    if not on_paper:
        return [_alone(number) for number in numbers]
    groups: dict[str, list[Number]] = {}
    for number in numbers:
        if number.id in placed:
            groups.setdefault(pattern_of(number.id), []).append(number)
    return [_alone(found[0]) if len(found) == 1 else _together(pattern, found) for pattern, found in groups.items()]


def _alone(number: Number) -> NumberRow:
    return NumberRow(number.id, number.name, number.formula, (Member("", number),), is_listed=False)


def _together(pattern: str, numbers: Sequence[Number]) -> NumberRow:
    marks = [
        place for place, mark in enumerate(pattern.split(".")) if len({n.id.split(".")[place] for n in numbers}) > 1
    ]
    parts = numbers[0].id.split(".")
    label = ".".join(pattern.split(".")[place] if place in marks else part for place, part in enumerate(parts))
    words = words_of(label)
    members = tuple(Member(".".join(number.id.split(".")[place] for place in marks), number) for number in numbers)
    return NumberRow(label, _common_name(words.name), words.formula, members, is_listed=not label.startswith(_UNLISTED))


def _common_name(name: str) -> str:
    """Leave the star of a name out, or a gap where words stand around it: each number says itself what stands there.

    >>> _common_name("*, before, sampled"), _common_name("Looked at: *"), _common_name("*: vetoed by the *")
    ('Before, sampled', 'Looked at', 'Vetoed by the …')
    >>> _common_name("Submissions * training of one molecule"), _common_name("Seed *, *, before")
    ('Submissions … training of one molecule', 'Seed …, …, before')
    """
    rest = re.sub(r"^\*(?:, \*)*[,:] |[,:] \*$", "", name).replace("*", "…")
    return rest[:1].upper() + rest[1:]


def places_of(row: NumberRow) -> list[tuple[str, str]]:
    """Say where the numbers of a row come from: each part once with the files that hold it, or the files of several."""
    parts: dict[str, dict[str, None]] = {}
    for member in row.members:
        for source in member.number.sources:
            parts.setdefault(source.part, {})[source.file] = None
    if len(row.members) > 1 and len(parts) > len(row.members[0].number.sources):
        files = dict.fromkeys(file for found in parts.values() for file in found)
        return [(" and ".join(files), "")]
    return [(" and ".join(files), part) for part, files in parts.items()]
