"""Which charts a packet draws, and where in the evidence the data of each stand."""

from __future__ import annotations

from collections.abc import Iterator

from molforge_eval.report.curves import STEP_TITLE
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.figures import GROUPS, SINGLES
from molforge_eval.report.ladder_chart import has_own_score
from molforge_eval.report.section_evidence import ChartNote, ChartSeries
from molforge_eval.report.seed_chart import has_pair

_SCORE = "final_score"
_DRAWN_SCORES = frozenset(
    {"before", "after", "before_low", "before_high", "after_low", "after_high", "greedy_before", "greedy_after"}
    | {"do_nothing", "random_valid", "heuristic", "ceiling"}
)


def with_charts(evidence: Evidence) -> Evidence:
    """Add to an evidence which charts are drawn from it."""
    return evidence.model_copy(update={"charts": tuple(_charts(evidence))})


def _charts(evidence: Evidence) -> Iterator[ChartNote]:
    if has_own_score(evidence):
        drawn = tuple(number.id for number in evidence.numbers if number.value is not None and _is_drawn(number.id))
        yield _note(
            "hero",
            _SCORE,
            None,
            ChartSeries(label=_SCORE, pointer=None, numbers=drawn, points=len(drawn), kept_every=1),
        )
    if has_pair(evidence) and evidence.seed_table is not None:
        yield _note("seeds", _SCORE, None, _part("seeds", "/seed_table/lines", len(evidence.seed_table.lines)))
    for name, single in SINGLES.items():
        series = _curve(evidence, name, name)
        if series is not None:
            yield _note(name, single.x_title, single.y_title, series)
    for name, group in GROUPS.items():
        found = [_curve(evidence, curve, label) for label, _, curve in group.members]
        members = [series for series in found if series is not None]
        if members:
            yield _note(name, STEP_TITLE, group.y_title, *members)
    if evidence.phases:
        yield _note("actions", "share of calls", None, _part("actions", "/phases", len(evidence.phases)))
    if evidence.paid:
        yield _note("paid", "training reward", _SCORE, _part("episodes", "/paid", len(evidence.paid)))
    if evidence.exploration is not None:
        cells = len(evidence.exploration.cells)
        yield _note("molecules", None, None, _part("molecules", "/exploration/cells", cells))


def _is_drawn(number_id: str) -> bool:
    family, *_, field = number_id.split(".")
    return family in {"score", "unpaired"} and field in _DRAWN_SCORES


def _note(name: str, x_title: str | None, y_title: str | None, *series: ChartSeries) -> ChartNote:
    return ChartNote(name=name, x_title=x_title, y_title=y_title, series=series)


def _part(label: str, pointer: str, points: int) -> ChartSeries:
    return ChartSeries(label=label, pointer=pointer, numbers=(), points=points, kept_every=1)


def _curve(evidence: Evidence, name: str, label: str) -> ChartSeries | None:
    for place, note in enumerate(evidence.curves):
        if note.name == name and note.curve.points:
            pointer = f"/curves/{place}/curve/points"
            points, every = len(note.curve.points), note.curve.kept_every
            return ChartSeries(label=label, pointer=pointer, numbers=(), points=points, kept_every=every)
    return None
