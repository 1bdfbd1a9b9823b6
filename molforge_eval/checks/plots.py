"""Pictures and the data behind them: every plotted point from its source, every picture from its points.

The pixels are never decoded: a picture is bound to its data by the digest in it, and the packet draws its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import orjson
import polars as pl

from molforge_env import __version__
from molforge_eval import layout
from molforge_eval.canonical import digest, plain
from molforge_eval.catalogue import finding, seen, short
from molforge_eval.checks.evaluations import with_own_means
from molforge_eval.checks.pictures import read_picture
from molforge_eval.checks.rounding import agrees
from molforge_eval.findings import Finding
from molforge_eval.records import PlotRecord
from molforge_eval.report.series import (
    AVERAGE_WINDOW,
    Curve,
    action_shares,
    curve_of,
    curve_over_steps,
    thirds,
    trainer_rows,
)
from molforge_eval.run_directory import RunDirectory
from molforge_eval.shape import shape_of
from molforge_eval.shipped import template_folder

Rows = list[tuple[Any, ...]]

_TRAINER, _LINES = (layout.TRAINER_LOG,), (layout.ROLLOUTS,)
_CURVE = ("segment", "step", "value", "average")
_SOURCES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "plots/reward_curve.png": (_TRAINER, ("step", "reward"), _CURVE),
    "plots/loss_curve.png": (_TRAINER, ("step", "loss"), _CURVE),
    "plots/grad_norm_curve.png": (_TRAINER, ("step", "grad_norm"), _CURVE),
    "plots/final_score_curve.png": (_LINES, ("trainer_step", "episode_score"), _CURVE),
    "plots/action_distribution.png": (
        _LINES,
        ("trainer_step", "action_type"),
        ("phase", "action", "calls", "share"),
    ),
}
"""Files, columns of them, and columns of the points, of each picture that one source gives."""
_BLANKS = "\u2009\u202f\u00a0"
_NUMBER = re.compile(rf"\d[\d,{_BLANKS}]*(?:\.\d+)?")
"""Thousands may be set off by a comma or by a narrow blank."""


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compare plots, plot data and their sources."""
    table = run.plot_table
    records = {} if table is None else {record.path: record for record in table.plots}
    expected = expected_rows(run)
    if table is not None:
        unread = _unread_sources(run)
        for index, record in enumerate(table.plots):
            if unread.intersection(record.sources):
                # The source is named as unreadable; nothing follows from it for the picture.
                continue
            yield from _check_record(index, record, expected.get(record.path), run)
            yield from _check_words(index, record, run)
    for path in run.files.sizes:
        if path.startswith("plots/") and path.endswith(".png"):
            yield from _check_picture(path, records.get(path), run)
            if table is not None and path not in records:
                yield finding("PLOT_UNLISTED", "the picture has no data in plots/plot_data.json", file=path)


def _unread_sources(run: RunDirectory) -> frozenset[str]:
    read = dict(run.evaluations())
    return frozenset(path for path in layout.EVALUATIONS if path in run.files and path not in read)


def expected_rows(run: RunDirectory) -> Mapping[str, Rows]:
    """Compute the points of every plot of the layout from logs and evaluations."""
    rows = trainer_rows(run.trainer_log)
    ends = run.rollouts.select("trainer_step", "episode_score", "ended_by").filter(pl.col("ended_by").is_not_null())
    scores = curve_over_steps(ends["trainer_step"].to_list(), ends["episode_score"].to_list(), "episode_score")
    early, late = thirds(run.rollouts.select("trainer_step", "action_type"))
    shares = [
        *action_shares("early training", early["action_type"].to_list()),
        *action_shares("late training", late["action_type"].to_list()),
    ]
    points: dict[str, Rows] = {
        "plots/reward_curve.png": _curve_rows(curve_of(rows, "reward")),
        "plots/loss_curve.png": _curve_rows(curve_of(rows, "loss")),
        "plots/grad_norm_curve.png": _curve_rows(curve_of(rows, "grad_norm")),
        "plots/final_score_curve.png": _curve_rows(scores),
        "plots/eval_before_after.png": _evaluation_rows(run),
        "plots/action_distribution.png": [tuple(share) for share in shares],
    }
    return {path: found for path, found in points.items() if found}


def _curve_rows(curve: Curve) -> Rows:
    return [(point.segment, point.step, point.value, point.average) for point in curve.points]


def _evaluation_rows(run: RunDirectory) -> Rows:
    sides = (("before", run.before), ("after", run.after))
    arms = [(name, with_own_means(found)) for name, found in sides if found is not None]
    rows: Rows = []
    for part in sorted({summary.part for _, found in arms for summary in found.summaries}):
        for arm, found in arms:
            for summary in (entry for entry in found.summaries if entry.part == part):
                rows += [(part, arm, task.scenario_id, task.mean_final_score) for task in summary.tasks]
                rows.append((part, arm, "mean", summary.mean_final_score))
    return rows


def _check_record(index: int, record: PlotRecord, expected: Rows | None, run: RunDirectory) -> Iterator[Finding]:
    place: dict[str, Any] = {"file": layout.PLOT_DATA}
    own = digest([list(record.columns), plain([list(row) for row in record.rows])])
    if own != record.data_sha256:
        what = f"the points of {record.path} have digest {short(own)}, data_sha256 says {short(record.data_sha256)}"
        yield finding("PLOT_HASH_DIFFERS", what, pointer=f"/plots/{index}/data_sha256", **place)
    if record.path not in run.files and not run.may_lack(record.path):
        what = f"{record.path} is not there, its data are"
        yield finding("PLOT_MISSING", what, pointer=f"/plots/{index}/path", **place)
    if expected is None:
        what = f"no source in the run gives points for {record.path}"
        yield finding("PLOT_DATA_DIFFERS", what, pointer=f"/plots/{index}/sources", **place)
        return
    if len(record.rows) != len(expected):
        what = f"{record.path} has {len(record.rows)} points, its sources give {len(expected)}"
        yield finding("PLOT_DATA_DIFFERS", what, pointer=f"/plots/{index}/rows", **place)
        return
    for row, (recorded, wanted) in enumerate(zip(record.rows, expected, strict=True)):
        if not _is_same_row(recorded, wanted):
            what = f"a point of {record.path} is {seen(list(recorded))}, its sources give {seen(list(wanted))}"
            yield finding("PLOT_DATA_DIFFERS", what, pointer=f"/plots/{index}/rows/{row}", **place)


def _check_words(index: int, record: PlotRecord, run: RunDirectory) -> Iterator[Finding]:
    """A picture is what its words say: its own source columns, and no number that its points do not give."""
    known = _SOURCES.get(record.path)
    stated = (record.sources, record.source_columns, record.columns)
    for key, own, wanted in zip(("sources", "source_columns", "columns"), stated, known or stated, strict=True):
        if own != wanted:
            what = f"{record.path} has {key} {seen(list(own))}, the picture of that name has {seen(list(wanted))}"
            yield finding("PLOT_DATA_DIFFERS", what, file=layout.PLOT_DATA, pointer=f"/plots/{index}/{key}")
    if known is None and record.path != "plots/eval_before_after.png":
        return
    if run.manifest is not None and run.manifest.product_version == __version__:
        # Another version may word the same axis in another way.
        words = orjson.loads((template_folder() / "plot_words.json").read_bytes())[PurePosixPath(record.path).stem]
        for key in ("title", "x_label", "y_label"):
            if getattr(record, key) != words[key]:
                what = f"the {key} of {record.path} is {seen(getattr(record, key))}, its points are {seen(words[key])}"
                yield finding("PLOT_CAPTION_DIFFERS", what, file=layout.PLOT_DATA, pointer=f"/plots/{index}/{key}")
    given = _numbers_of(record, run)
    for key in ("title", "caption", "x_label", "y_label"):
        numbers = [re.sub(rf"[,{_BLANKS}]", "", text) for text in _NUMBER.findall(getattr(record, key))]
        strange = [number for number in numbers if number not in given]
        if strange:
            what = f"the {key} of {record.path} says {strange[0]}, its points give {', '.join(sorted(given))}"
            yield finding("PLOT_CAPTION_DIFFERS", what, file=layout.PLOT_DATA, pointer=f"/plots/{index}/{key}")


def _numbers_of(record: PlotRecord, run: RunDirectory) -> frozenset[str]:
    """List the numbers that the words about a picture may hold."""
    if record.path == "plots/eval_before_after.png":
        summaries = [summary for _, found in run.evaluations() for summary in found.summaries]
        counts = [sum(entry.planned for entry in summaries), sum(entry.completed for entry in summaries), 0]
    elif record.path == "plots/action_distribution.png":
        counts = [sum(row[2] for row in record.rows if len(row) > 2 and isinstance(row[2], int))]
    else:
        rows = trainer_rows(run.trainer_log)
        gaps = curve_of(rows, record.source_columns[-1]).gaps if record.sources == _TRAINER else 0
        # An unfinished episode counts 0.
        counts = [len(record.rows), gaps, AVERAGE_WINDOW, 0]
    return frozenset(str(count) for count in counts)


def _is_same_row(recorded: Sequence[Any], wanted: Sequence[Any]) -> bool:
    if len(recorded) != len(wanted):
        return False
    return all(
        agrees(float(left), float(right))
        if isinstance(left, int | float) and isinstance(right, int | float)
        else left == right
        for left, right in zip(recorded, wanted, strict=True)
    )


def _check_picture(path: str, record: PlotRecord | None, run: RunDirectory) -> Iterator[Finding]:
    picture = yield from read_picture(run, path)
    if picture is None:
        return
    text = {
        "run_id": picture.texts.get("molforge:run_id"),
        "data_sha256": picture.texts.get("molforge:data_sha256"),
        "software": picture.texts.get("Software"),
        "title": picture.texts.get("Title"),
    }
    shape = shape_of("plot_text")
    known = {key: value for key, value in text.items() if value is not None}
    if not shape.fits(known):
        for misfit in shape.explain(known):
            yield finding("PLOT_UNSIGNED", f"text chunks: {misfit.what}", file=path, pointer=misfit.pointer)
        return
    if run.manifest is not None and text["run_id"] != run.manifest.run_id:
        what = f"run id {seen(text['run_id'])}, the run is {run.manifest.run_id}"
        yield finding("RUN_ID_DIFFERS", what, file=path)
    if record is None:
        return
    if text["data_sha256"] != record.data_sha256:
        drawn = short(str(text["data_sha256"]))
        what = f"the picture was drawn from data {drawn}, plot_data.json has {short(record.data_sha256)}"
        yield finding("PLOT_OUTDATED", what, file=path)
    elif text["title"] != record.title:
        what = f"the picture is titled {seen(text['title'])}, plot_data.json has {seen(record.title)}"
        yield finding("PLOT_OUTDATED", what, file=path)
