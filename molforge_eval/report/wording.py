"""The templates, strict: every text is escaped, and a name that the evidence lacks is an error, never a blank.

Templates place and word; they compute nothing. What they may call is listed here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from molforge_env.models import Slot
from molforge_env.molecules import molecule_from_code
from molforge_eval.report.drawings import draw_molecule
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.figures import NARROW
from molforge_eval.report.number_book import NumberId
from molforge_eval.report.number_listing import places_of, rows_of
from molforge_eval.report.numerals import percent, short_commit, short_hash
from molforge_eval.report.quoting import quote
from molforge_eval.report.render import Svg
from molforge_eval.shipped import template_folder

Item = TypeVar("Item")
MEMORY = "memory:"
"""Scheme of the addresses that a paper knows: names of what travels beside it, and nothing else."""


class Picture(NamedTuple):
    """A picture as a template places it."""

    width: str
    height: str
    body: Markup
    """What is between the tags, for a picture inside the page."""
    address: str | None
    """Where the picture stands, for one beside the paper."""


class Medium(NamedTuple):
    """How pictures and colours stand: inside a page that may be dark, or beside a paper in fixed colours."""

    paint: Callable[[str], str]
    """Turns the colours of a finished picture into those of the medium."""
    hue: Callable[[str], str]
    """Names the colour of a role."""
    shelf: dict[str, bytes] | None
    """Where the pictures of a paper are put, by address; `None` for a page, which holds them itself."""

    def place(self, name: str, svg: Svg) -> Picture:
        """Make a picture placeable; its markup is our own, every text in it escaped where it was drawn."""
        width, height = f"{svg.width:g}", f"{svg.height:g}"
        if self.shelf is None:
            return Picture(width, height, Markup(self.paint(svg.body)), None)  # noqa: S704 # drawn here
        address = f"{MEMORY}{name}.svg"
        self.shelf[address] = (
            f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
            f'viewBox="0 0 {width} {height}" width="{width}" height="{height}">{self.paint(svg.body)}</svg>'
        ).encode()
        return Picture(width, height, Markup(), address)


class Uses:
    """Which numbers a document has placed so far, in their order.

    The first use of a number is a stop of the keyboard and the place that its row leads back to; a further one can be
    clicked and is passed over.
    """

    def __init__(self) -> None:
        """Start with none."""
        self._placed: dict[NumberId, None] = {}

    def is_first(self, number_id: NumberId) -> bool:
        """Note a use, and tell whether it is the first."""
        known = number_id in self._placed
        self._placed[number_id] = None
        return not known

    def __contains__(self, number_id: object) -> bool:
        """Tell whether a number was placed."""
        return number_id in self._placed


TREND_WORDS = {"rose": "rose", "fell": "fell", "flat": "shows no trend", "unknown": "cannot be told"}


def open_templates(folder: Path | None = None) -> Environment:
    """Open the shipped templates.

    Args:
        folder: Looked into first, so that a template in it stands for the shipped one of the same name.
    """
    return _shipped_templates() if folder is None else _opened([folder, template_folder()])


@cache
def _shipped_templates() -> Environment:
    """Page and paper share most of their templates, and reading one costs more than filling it."""
    return _opened([template_folder()])


def _opened(folders: Sequence[Path]) -> Environment:
    # `select_autoescape` passes over names such as page.html.j2: escaping is on for all.
    environment = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        quote=quote,
        aligned=aligned,
        commands=commands,
        drawn=drawn,
        halves=halves,
        model_name=model_name,
        percent=percent,
        places_of=places_of,
        rows_of=rows_of,
        short_commit=short_commit,
        short_hash=short_hash,
    )
    environment.globals["trend_words"] = TREND_WORDS
    return environment


def words_for(evidence: Evidence, figures: Mapping[str, Svg], medium: Medium) -> dict[str, Any]:
    """Return what the sections may name.

    Args:
        evidence: Everything that is said.
        figures: The charts by name; one that was not drawn is absent and stands as nothing.
        medium: How colours are named where the words will stand.
    """
    wanted = {name: svg for name, svg in figures.items() if medium.shelf is None or not name.endswith(NARROW)}
    placed = {name: medium.place(name, svg) for name, svg in wanted.items()}

    drawn_before = set[str]()

    def drawings(code: str, changed: Slot | None) -> Picture:
        name = f"{code}-{changed or 'whole'}"
        picture = medium.place(name, draw_molecule(code, changed))
        if medium.shelf is not None:
            return picture
        if name in drawn_before:
            return picture._replace(body=Markup('<use href="#molecule-{}"/>').format(name))
        drawn_before.add(name)
        return picture._replace(body=Markup('<g id="molecule-{}">{}</g>').format(name, picture.body))

    return {
        "evidence": evidence,
        "number": evidence.number,
        "known": lambda number_id: number_id in evidence.by_id and evidence.number(number_id).value is not None,
        "figures": _Figures(placed),
        "drawings": drawings,
        "hue": medium.hue,
        "uses": Uses(),
        "on_paper": medium.shelf is not None,
        "fragments": lambda code: ", ".join(molecule_from_code(code).fragments),
    }


class _Figures(dict[str, Picture]):
    """Pictures by name, nothing for one that was not drawn."""

    def __missing__(self, name: str) -> None:
        return None


def aligned(left: Sequence[Item], right: Sequence[Item]) -> list[tuple[Item | None, Item | None]]:
    """Put two lists side by side, the shorter one filled up with nothing.

    >>> aligned("ab", "c")
    [('a', 'c'), ('b', None)]
    """
    return list(zip_longest(left, right))


def halves(items: Sequence[Item]) -> tuple[Sequence[Item], Sequence[Item]]:
    """Cut a list into two columns, the longer one first."""
    middle = -(-len(items) // 2)
    return items[:middle], items[middle:]


def drawn(words: Mapping[str, Item], figures: Mapping[str, Picture]) -> list[tuple[str, Item]]:
    """Keep the entries whose chart was drawn, in their order."""
    return [(name, entry) for name, entry in words.items() if name in figures]


def commands(text: str) -> Markup:
    """Set what stands between back quotes as code; the text is escaped, and a back quote without its other one stays.

    >>> commands("run `molforge-eval verify <run>` & see")
    Markup('run <code>molforge-eval verify &lt;run&gt;</code> &amp; see')
    """
    parts = re.split(r"`([^`]+)`", text)
    set_in_code = [Markup("<code>{}</code>").format(part) if place % 2 else part for place, part in enumerate(parts)]
    return Markup().join(set_in_code)


def model_name(name: str) -> str:
    """Name a model by the last two parts of its path, or by its hub name.

    >>> model_name("molforge_train/models/tiny/base"), model_name("Qwen/Qwen3.5-2B")
    ('tiny/base', 'Qwen/Qwen3.5-2B')
    """
    return "/".join(name.rstrip("/").split("/")[-2:]) or name
