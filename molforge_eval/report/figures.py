"""Every chart of the packet, drawn from the evidence alone.

A chart without data is not drawn; the page then says in words what is missing.
"""

from __future__ import annotations

from typing import NamedTuple

from molforge_eval.report.bars import action_chart
from molforge_eval.report.curves import (
    EPISODE_STEP_TITLE,
    LINE_TITLE,
    STEP_TITLE,
    NamedCurve,
    Size,
    curve_chart,
    curves_chart,
)
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.ladder_chart import has_own_score, ladder_chart
from molforge_eval.report.molecule_map import molecule_map
from molforge_eval.report.paid_chart import paid_chart
from molforge_eval.report.render import Svg, svg_of
from molforge_eval.report.seed_chart import has_pair, seed_chart
from molforge_eval.report.series import Curve
from molforge_eval.report.vega_lite import Chart

HERO = Size(470, 0)
WIDE = Size(590, 155)
HALF = Size(250, 98)
LOW = Size(590, 110)
# The narrow form of a chart is as wide as a phone, its text as large as on a desk.
NARROW = "_narrow"
HERO_NARROW = Size(178, 0)
WIDE_NARROW = Size(272, 150)


class Single(NamedTuple):
    """A chart of one curve."""

    y_title: str
    role: str
    size: Size
    is_averaged: bool
    x_title: str = STEP_TITLE


class Group(NamedTuple):
    """A chart of several curves of one unit, each with its label and colour."""

    y_title: str
    members: tuple[tuple[str, str, str], ...]
    size: Size
    narrow: Size | None = None


SINGLES = {
    "reward": Single("mean reward of a step", "reward", WIDE, is_averaged=True),
    "loss": Single("loss", "after", HALF, is_averaged=True),
    "grad_norm": Single("gradient norm", "before", HALF, is_averaged=True),
    "learning_rate": Single("learning rate", "ink", HALF, is_averaged=False),
    "entropy": Single("entropy (nats)", "after", HALF, is_averaged=True),
    "kl": Single("KL to the start", "caution", HALF, is_averaged=True),
    "step_time": Single("seconds a step", "before", HALF, is_averaged=False),
    "budget_left": Single("share of budget left", "ceiling", HALF, is_averaged=True, x_title=EPISODE_STEP_TITLE),
    "visited": Single("molecules visited so far", "after", LOW, is_averaged=False, x_title=EPISODE_STEP_TITLE),
    "call_reward": Single("reward of a call", "reward", WIDE, is_averaged=True, x_title=LINE_TITLE),
    "call_score": Single("final_score", "after", WIDE, is_averaged=True, x_title=LINE_TITLE),
}
GROUPS = {
    "sentinel": Group(
        "mean of a step's episodes",
        (("training reward", "reward", "training_reward"), ("strict score", "after", "strict_score")),
        Size(500, 125),
        Size(190, 125),
    ),
    "governance": Group(
        "share of calls, episodes",
        (("vetoed", "caution", "vetoed"), ("invalid", "before", "invalid"), ("unfinished", "ink", "unfinished")),
        Size(200, 108),
    ),
}


def draw_figures(evidence: Evidence) -> dict[str, Svg]:
    """Draw every chart that there is data for, by name; a wide one a second time for a narrow screen."""
    return {name: svg_of(chart, prefix=name.replace("_", "-")) for name, chart in charts_of(evidence).items()}


def charts_of(evidence: Evidence) -> dict[str, Chart]:
    """Make every chart that there is data for, by name, undrawn."""
    charts: dict[str, Chart] = {}
    marks = tuple(resume.step for resume in evidence.resumes)
    if has_own_score(evidence):
        charts["hero"] = ladder_chart(evidence, size=HERO)
        charts["hero_narrow"] = ladder_chart(evidence, size=HERO_NARROW, legend_columns=3)
    if has_pair(evidence):
        charts["seeds"] = seed_chart(evidence, size=Size(600, 0))
        charts["seeds_narrow"] = seed_chart(evidence, size=Size(246, 0), per_row=2)
    for name, single in SINGLES.items():
        curve = evidence.curve(name)
        if curve is not None and curve.finite():
            charts[name] = _single(single, curve, single.size, marks)
            if single.size in {WIDE, LOW}:
                charts[name + NARROW] = _single(single, curve, WIDE_NARROW, marks)
    for name, group in GROUPS.items():
        found = [(label, role, evidence.curve(curve)) for label, role, curve in group.members]
        curves = [NamedCurve(label, role, curve) for label, role, curve in found if curve and curve.finite()]
        if curves:
            charts[name] = _group(group, curves, group.size, marks)
            if group.narrow:
                charts[name + NARROW] = _group(group, curves, group.narrow, marks)
    if evidence.phases:
        shares = [share for phase in evidence.phases for share in phase.actions]
        labels = [phase.label for phase in evidence.phases]
        height = 27 * len(labels)
        charts["actions"] = action_chart(shares, labels, size=Size(530, height))
        charts["actions_narrow"] = action_chart(shares, labels, size=Size(236, height), legend_columns=3)
    if evidence.paid:
        charts["paid"] = paid_chart(evidence.paid, size=Size(500, 190))
        charts["paid_narrow"] = paid_chart(evidence.paid, size=Size(266, 190), legend_columns=2)
    if evidence.exploration is not None:
        charts["molecules"] = molecule_map(evidence.exploration)
        charts["molecules_narrow"] = molecule_map(evidence.exploration, narrow=True)
    return charts


def _single(single: Single, curve: Curve, size: Size, marks: tuple[int, ...]) -> Chart:
    return curve_chart(
        curve,
        y_title=single.y_title,
        role=single.role,
        size=size,
        averaged=single.is_averaged,
        x_title=single.x_title,
        marks=marks,
    )


def _group(group: Group, curves: list[NamedCurve], size: Size, marks: tuple[int, ...]) -> Chart:
    # Episodes are counted by the steps that were done before them; a row of the trainer counts its own step.
    return curves_chart(curves, y_title=group.y_title, size=size, x_title=EPISODE_STEP_TITLE, marks=marks)
