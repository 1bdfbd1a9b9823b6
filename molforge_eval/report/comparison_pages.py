"""The page and the paper of a comparison, from its evidence alone; the page runs no script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from molforge_eval.report.comparison_evidence import ComparisonEvidence, Meeting, Pair, UnlikeKey
from molforge_eval.report.page import FACES, font_faces, paint_by_role
from molforge_eval.report.paper import UNDATED, PaperSize, Sheet
from molforge_eval.report.render import Svg
from molforge_eval.report.theme import palettes
from molforge_eval.report.wording import MEMORY, Medium, Uses, open_templates
from molforge_eval.shipped import font_folder

_COLUMNS_OF_THE_MEAN = 3
_RUNS_ON_A_SHEET = 6
_PAIRS_ON_A_SHEET = 15
_SHARE_OF_A_PAIR = 0.7
"""A line of a setting takes less room than that of a pair leaves, for a pair that is refused is told elsewhere too."""
_FEWEST_SETTINGS = 5
_RUNS_WITH_ROOM = 3
"""Up to so many runs a sheet has room for the p-values of tasks."""
_MANY_SETTINGS = 40
_SHEETS_OF_PAGE = ("base.css.j2", "page.css.j2", "compare.css.j2")


def render_comparison_page(
    evidence: ComparisonEvidence, figures: Mapping[str, Svg], *, templates: Path | None = None
) -> bytes:
    """Write the page.

    Args:
        evidence: Everything that is said.
        figures: The chart, wide and narrow; none when no run has a score.
        templates: A folder whose templates stand for shipped ones of the same name.
    """
    environment = open_templates(templates)
    style = font_faces(_woff2) + "".join(
        environment.get_template(name).render(**palettes()) for name in _SHEETS_OF_PAGE
    )
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; font-src data:; base-uri 'none'; form-action 'none'"
    medium = Medium(paint_by_role, lambda role: f"var(--{role})", shelf=None)
    text = environment.get_template("compare.html.j2").render(
        **comparison_words(evidence, figures, medium),
        policy=policy,
        style=Markup(style),  # noqa: S704 # our own sheet
    )
    return text.encode("utf-8")


def write_comparison_sheet(
    evidence: ComparisonEvidence,
    figures: Mapping[str, Svg],
    *,
    created: str = UNDATED,
    size: PaperSize = "A4",
    templates: Path | None = None,
) -> Sheet:
    """Write the document of the paper, its style sheet and its pictures."""
    environment = open_templates(templates)
    light = palettes()["light"]
    own = {"palette": light, "paper_size": size}
    sheets = [environment.get_template("base.css.j2").render(light)]
    sheets += [environment.get_template(name).render(own) for name in ("paper.css.j2", "compare_paper.css.j2")]
    faces = {f"{MEMORY}{name}.ttf": (font_folder() / f"{name}.ttf").read_bytes() for _, _, name in FACES}
    style = font_faces(lambda name: f"{MEMORY}{name}.ttf") + "".join(sheets)
    shelf: dict[str, bytes] = {}
    medium = Medium(lambda body: body, light.__getitem__, shelf)
    words = comparison_words(evidence, figures, medium)
    markup = environment.get_template("compare_paper.html.j2").render(**words, created=created)
    return Sheet(markup, style, {**faces, **shelf})


def comparison_words(evidence: ComparisonEvidence, figures: Mapping[str, Svg], medium: Medium) -> dict[str, Any]:
    """Return what the templates of a comparison may name."""
    on_paper = medium.shelf is not None
    wanted = {name: svg for name, svg in figures.items() if not (on_paper and name.endswith("_narrow"))}
    placed = {name: medium.place(name, svg) for name, svg in wanted.items()}
    return {
        "evidence": evidence,
        "number": evidence.number,
        "known": lambda number_id: evidence.value(number_id) is not None,
        "figures": placed,
        "barriers": _group_barriers(evidence),
        "columns_of_pairs": _COLUMNS_OF_THE_MEAN + len(evidence.tasks),
        "columns_of_settings": 1 + len(evidence.runs),
        "grid": _grid_of(evidence),
        "signs": tuple(dict.fromkeys(sign for row in _grid_of(evidence) for sign in row.against.values())),
        "winners": _winners(evidence),
        "is_tight": on_paper and len(evidence.runs) > _RUNS_WITH_ROOM,
        "settings": evidence.settings[: _settings_on_paper(evidence)] if on_paper else evidence.settings,
        "hue": medium.hue,
        "uses": Uses(),
        "on_paper": on_paper,
    }


def _settings_on_paper(evidence: ComparisonEvidence) -> int:
    """Return how many settings a paper lists: up to six runs stand on one sheet, and the rest is attached."""
    runs, pairs = len(evidence.runs), len(evidence.pairs)
    if runs > _RUNS_ON_A_SHEET:
        return _MANY_SETTINGS
    free = (_PAIRS_ON_A_SHEET - pairs) * _SHARE_OF_A_PAIR
    return _FEWEST_SETTINGS + int(free) + 2 * (_RUNS_ON_A_SHEET - runs)


class GridRow(NamedTuple):
    """How one run stands to each of the others."""

    key: str
    against: Mapping[str, Meeting]
    """By the key of the other."""


_TURNED: Mapping[Meeting, Meeting] = {"higher": "lower", "lower": "higher"}


def _grid_of(evidence: ComparisonEvidence) -> list[GridRow]:
    """Set every run that has a pair against every other."""
    against: dict[str, dict[str, Meeting]] = {}
    for pair in evidence.pairs:
        against.setdefault(pair.first, {})[pair.second] = pair.meeting
        against.setdefault(pair.second, {})[pair.first] = _TURNED.get(pair.meeting, pair.meeting)
    return [GridRow(run.key, against[run.key]) for run in evidence.runs if run.key in against]


def _winners(evidence: ComparisonEvidence) -> list[tuple[str, list[str]]]:
    """List the runs that score above others, each with those, the one above most of them first."""
    above = [
        (row.key, [other for other, meeting in row.against.items() if meeting == "higher"])
        for row in _grid_of(evidence)
    ]
    return sorted((entry for entry in above if entry[1]), key=lambda entry: -len(entry[1]))


def _group_barriers(evidence: ComparisonEvidence) -> list[tuple[tuple[UnlikeKey, ...], list[Pair]]]:
    """Put refused pairs together that differ in the same keys by the same values."""
    found: dict[tuple[UnlikeKey, ...], list[Pair]] = {}
    for pair in evidence.pairs:
        if pair.differing:
            found.setdefault(pair.differing, []).append(pair)
    return list(found.items())


def _woff2(name: str) -> str:
    data = base64.b64encode((font_folder() / f"{name}.woff2").read_bytes()).decode()
    return f"data:font/woff2;base64,{data}"
