"""Single points of a curve by an address of their own: `curve.loss@12` is what the curve of the loss has at step 12.

How a point is made stands in `data/number_rules.toml` beside the rules of numbers.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import NamedTuple

from molforge_env.errors import UsageError
from molforge_eval.catalogue import printable
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.number_rows import NumberRows, Row
from molforge_eval.report.number_rules import PointRule, point_rule_of
from molforge_eval.report.numerals import scientific
from molforge_eval.report.series import Point

_ADDRESS = re.compile(r"curve\.([A-Za-z0-9_:-]+)@([0-9]{1,15})")
_NEAREST = 3
_LONGEST = 120


class CurvePoint(NamedTuple):
    """One point of a curve."""

    curve: str
    point: Point
    before: int
    """Step of the point before it; -1 for the first."""

    @property
    def id(self) -> str:
        """Its address."""
        return f"curve.{self.curve}@{self.point.step}"

    @property
    def name(self) -> str:
        """What a reader calls it."""
        return f"{self.curve}: at {self.point.step}"

    @property
    def text(self) -> str:
        """Its value as printed."""
        return scientific(self.point.value)

    @property
    def rule(self) -> PointRule:
        """How it is made."""
        return point_rule_of(self.curve)

    def rows(self, rows: NumberRows) -> list[Row]:
        """List the rows that it is made from."""
        return rows.of_point(self.rule, self.point, self.before)


def is_address(name: str) -> bool:
    """Tell whether a name asks for a point of a curve."""
    return "@" in name


def find_point(evidence: Evidence, name: str) -> CurvePoint:
    """Find the point of an address; of several at one step, as after a resume, the last.

    Raises:
        UsageError: There is no such curve, or it has no point at this step.
    """
    found = _ADDRESS.fullmatch(name)
    curves = {note.name: note.curve.points for note in evidence.curves}
    if found is None or found[1] not in curves:
        raise _no_point(name, tuple(curves))
    points, step = curves[found[1]], int(found[2])
    places = [place for place, point in enumerate(points) if point.step == step]
    if not places:
        steps = sorted({point.step for point in points}, key=lambda other: abs(other - step))[:_NEAREST]
        near = ", ".join(map(str, sorted(steps)))
        raise UsageError(f"curve {found[1]} has no point at {step}", where="ID", mend=f"Steps near it: {near}.")
    place = places[-1]
    return CurvePoint(found[1], points[place], points[place - 1].step if place else -1)


def _no_point(name: str, curves: tuple[str, ...]) -> UsageError:
    shown = printable(name[:_LONGEST]) + ("…" if len(name) > _LONGEST else "")
    asked = name.partition("@")[0].removeprefix("curve.")[:_LONGEST]
    near = get_close_matches(asked, curves, n=_NEAREST, cutoff=0.5) or curves[:_NEAREST]
    listed = ", ".join(f"curve.{curve}@STEP" for curve in near)
    mend = f"Near it: {listed}." if near else "It has no curve; list its numbers with `molforge-report trace RUN`."
    return UsageError(f"this run has no point {shown!r}", where="ID", mend=mend)
