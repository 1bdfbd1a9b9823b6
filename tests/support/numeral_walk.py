"""Walk a rendered document and say of each numeral in it where it comes from.

A numeral belongs to a number of the evidence when it stands inside an element that carries its id and the element says
what the evidence says. Elsewhere it may be part of a text that the evidence quotes, or of a phrase of the templates
that is allowed for a stated reason. What is neither is stray.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

from molforge_eval.canonical import plain
from molforge_eval.report.comparison_evidence import ComparisonEvidence
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.numerals import short_commit, short_hash

NUMERAL = re.compile(r"(?<![A-Za-z0-9_])\d+(?:[.,\u202f]\d+)*(?:e[-\u2212]?\d+)?")
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?(?:-dirty)?")
_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"],
)
_SHAPES = frozenset({"path", "circle", "rect", "line", "polygon", "ellipse", "use", "stop"})
_UNREAD = frozenset({"style", "script", "kbd"})
_SCALE = frozenset({"role-axis-label", "role-legend-label"})
_ORDINAL = "count"
"""Class of the numbers of a list, which CSS would write as well."""
_SHORTEST_QUOTE = 5
"""A shorter text is only taken for a quote where it stands alone."""
_NO_NUMBER = ("numbers", "evidence_version", "comparison_version")

Said = Evidence | ComparisonEvidence


class Piece(NamedTuple):
    """A text of the document."""

    text: str
    number_id: str | None
    """Id of the number that the element around it carries."""
    is_value: bool
    """A value of a record, marked as one."""
    is_attribute: bool
    """An alternative text, which can hold no element."""
    is_chart: bool
    """A text that a chart draws."""
    is_tick: bool
    """A label of an axis or of a scale of shades."""


class Stray(NamedTuple):
    """A numeral of which nothing says where it comes from."""

    numeral: str
    text: str


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[Piece] = []
        self._open: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        named = {key: value or "" for key, value in attrs}
        self.pieces += [
            Piece(named[key], None, False, True, False, False)
            for key in ("alt", "aria-label", "title", "content")
            if key in named and "http-equiv" not in named
        ]
        if tag not in _VOID:
            self._open.append((tag, named))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        if tag not in _SHAPES:
            self.handle_starttag(tag, attrs)
            self.handle_endtag(tag)

    def handle_data(self, data: str) -> None:
        tags = [tag for tag, _ in self._open]
        if not data.strip() or any(tag in _UNREAD for tag in tags):
            return
        classes = " ".join(named.get("class", "") for _, named in self._open).split()
        id_around = next((named["data-i"] for _, named in reversed(self._open) if "data-i" in named), "")
        if _ORDINAL in classes or data.strip() in id_around:
            return
        self.pieces.append(
            Piece(
                text=data,
                number_id=next((named["data-n"] for _, named in reversed(self._open) if "data-n" in named), None),
                is_value=any("data-q" in named for _, named in self._open),
                is_attribute="title" in tags and "svg" in tags,
                is_chart="svg" in tags and "text" in tags,
                is_tick=not _SCALE.isdisjoint(classes),
            )
        )


def pieces_of(markup: str) -> list[Piece]:
    """Take a document apart into its texts."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    return reader.pieces


def strays(markup: str, evidence: Said) -> list[Stray]:
    """Find the numerals that belong to no number, to no quoted text and to no allowed phrase."""
    said = frozenset(part for number in evidence.numbers for part in NUMERAL.findall(number.text))
    quotes, values = quoted_texts(evidence), frozenset(map(str, _leaves(plain(evidence))))
    found: list[Stray] = []
    for piece in pieces_of(markup):
        if piece.is_tick or not NUMERAL.search(piece.text):
            continue
        if piece.number_id is not None:
            if " ".join(piece.text.split()) != " ".join(evidence.number(piece.number_id).text.split()):
                found.append(Stray(piece.text, f"not what {piece.number_id} says"))
            continue
        if piece.is_value:
            if piece.text.strip() not in values:
                found.append(Stray(piece.text, "no value of the evidence"))
            continue
        rest = without(piece.text, quotes)
        # A text that can hold no element may only repeat what the evidence says.
        known = said if piece.is_attribute or piece.is_chart else frozenset[str]()
        loose = [numeral for numeral in NUMERAL.findall(rest) if numeral not in known]
        found += [Stray(numeral, " ".join(piece.text.split())) for numeral in loose]
    return found


def without(text: str, quotes: tuple[str, ...]) -> str:
    """Take the quoted texts and the allowed phrases out of a text."""
    if text.strip() in quotes:
        return ""
    for quote in quotes:
        if len(quote) >= _SHORTEST_QUOTE and quote in text:
            text = _bounded(quote).sub(" ", text)
    for phrase in allowed():
        text = phrase.sub(" ", text)
    return text


@cache
def allowed() -> tuple[re.Pattern[str], ...]:
    """Read the phrases in which a numeral is a word of ours."""
    loaded = tomllib.loads(Path(__file__).with_name("numerals_allowed.toml").read_text(encoding="utf-8"))
    return tuple(re.compile(pattern) for entry in loaded["phrase"] for pattern in entry["patterns"])


def quoted_texts(evidence: Said) -> tuple[str, ...]:
    """List every text of the evidence that holds a numeral, the longest first."""
    value = {key: item for key, item in plain(evidence).items() if key not in _NO_NUMBER}
    words = {
        text for number in evidence.numbers for text in (number.id, number.name, number.formula, number.reason or "")
    }
    hashes = {text for text in _texts(value) if _HASH.fullmatch(text)}
    words |= {short_hash(text) for text in hashes} | {short_commit(text) for text in hashes}
    if isinstance(evidence, Evidence):
        words |= {finding.where.text() for finding in evidence.findings}
    words |= {source.part for number in evidence.numbers for source in number.sources}
    found = {text for text in (*_texts(value), *words) if NUMERAL.search(text)}
    return tuple(sorted(found, key=lambda text: (-len(text), text)))


def _bounded(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![0-9A-Za-z]){re.escape(text)}(?![0-9A-Za-z])")


def _texts(value: Any) -> Iterator[str]:
    return (leaf for leaf in _leaves(value) if isinstance(leaf, str))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value
