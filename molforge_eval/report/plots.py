"""The run's pictures: six PNG files and `plot_data.json`, which holds every plotted point.

The trainer calls this before it seals the run. A picture carries the digest of its data, so that a picture of another
run, or one older than its log, shows. What there is no data for is not drawn: there is no bar of height 0 for an
evaluation that was never made.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import polars as pl

from molforge_env.errors import UnreadableError
from molforge_eval import layout
from molforge_eval.canonical import digest, file_bytes
from molforge_eval.records import Evaluation, PlotRecord, PlotTable
from molforge_eval.report.bars import TaskScore, action_chart, score_chart
from molforge_eval.report.curves import Size, curve_chart
from molforge_eval.report.numerals import whole
from molforge_eval.report.render import png_of
from molforge_eval.report.series import (
    AVERAGE_WINDOW,
    ActionShare,
    Curve,
    action_shares,
    curve_of,
    curve_over_steps,
    thirds,
    trainer_rows,
)
from molforge_eval.report.vega_lite import Chart, beside, titled
from molforge_eval.run_directory import RunDirectory, load
from molforge_eval.sealing import write_whole
from molforge_eval.shipped import template_folder

SOFTWARE = "molforge-evidence"
EVALUATIONS = {"before": layout.BEFORE, "after": layout.AFTER}
MEAN = "mean"
_SIZE = Size(560, 300)
_CURVE_COLUMNS = ("segment", "step", "value", "average")
_TRAINER_CURVES = (("reward_curve", "reward", "reward"), ("loss_curve", "loss", "after"))
_GRADIENT_CURVE = ("grad_norm_curve", "grad_norm", "before")


class Plot(NamedTuple):
    """A picture before it is drawn."""

    record: PlotRecord
    make_chart: Callable[[], Chart]
    """Building a chart costs far more than its points, and whoever compares points needs none."""


def draw_plots(run_dir: Path) -> PlotTable:
    """Draw every picture that the run has data for, and write the data beside them.

    Args:
        run_dir: A run directory with manifest, logs and evaluations; it need not be sealed yet.

    Raises:
        UnreadableError: The directory holds no run.
    """
    run = load(run_dir)
    plots = plots_of(run)
    table = PlotTable(format_version=1, run_id=_run_id(run), plots=tuple(plot.record for plot in plots))
    (run.root / "plots").mkdir(exist_ok=True)
    for plot in plots:
        write_whole(run.root / plot.record.path, _signed_png(png_of(plot.make_chart()), table.run_id, plot.record))
    write_whole(run.root / layout.PLOT_DATA, file_bytes(table))
    return table


def plots_of(run: RunDirectory) -> tuple[Plot, ...]:
    """Make the pictures of a run, in the order of their names; nothing is written."""
    rows = trainer_rows(run.trainer_log)
    plots = [_trainer_plot(rows, *entry) for entry in (*_TRAINER_CURVES, _GRADIENT_CURVE)]
    plots += [_score_plot(run.rollouts), _evaluation_plot(run.before, run.after), _action_plot(run.rollouts)]
    return tuple(sorted((plot for plot in plots if plot is not None), key=lambda plot: plot.record.path))


def _trainer_plot(rows: Sequence[Mapping[str, Any]], name: str, column: str, role: str) -> Plot | None:
    curve = curve_of(rows, column)
    return _curve_plot(curve, name, role, sources=(layout.TRAINER_LOG,), columns=("step", column))


def _score_plot(rollouts: pl.DataFrame) -> Plot | None:
    ends = rollouts.filter(pl.col("ended_by").is_not_null())
    curve = curve_over_steps(ends["trainer_step"].to_list(), ends["episode_score"].to_list(), "episode_score")
    return _curve_plot(
        curve, "final_score_curve", "ceiling", sources=(layout.ROLLOUTS,), columns=("trainer_step", "episode_score")
    )


def _curve_plot(
    curve: Curve, name: str, role: str, *, sources: tuple[str, ...], columns: tuple[str, ...]
) -> Plot | None:
    if not curve.points:
        return None
    words = _words(name, points=whole(len(curve.points)), gaps=whole(curve.gaps), window=AVERAGE_WINDOW)
    rows = [(p.segment, p.step, p.value, p.average) for p in curve.points]
    record = _record(name, words, sources=sources, source_columns=columns, columns=_CURVE_COLUMNS, rows=rows)

    def make_chart() -> Chart:
        chart = curve_chart(curve, y_title=words["y_label"], role=role, size=_SIZE)
        return titled(chart, _title(words["title"]))

    return Plot(record, make_chart)


def _evaluation_plot(before: Evaluation | None, after: Evaluation | None) -> Plot | None:
    evaluations = {arm: found for arm, found in (("before", before), ("after", after)) if found is not None}
    parts = sorted({part.part for found in evaluations.values() for part in found.summaries})
    rows: list[tuple[Any, ...]] = []
    panels: list[tuple[str, list[TaskScore], list[str]]] = []
    planned = counted = 0
    for part in parts:
        scores, tasks = list[TaskScore](), list[str]()
        for arm, found in evaluations.items():
            for summary in (s for s in found.summaries if s.part == part):
                means = [(task.scenario_id, task.mean_final_score) for task in summary.tasks]
                tasks += [task for task, _ in means if task not in tasks]
                means.append((MEAN, summary.mean_final_score))
                scores += [TaskScore(_short(task), arm, mean, None, None) for task, mean in means if mean is not None]
                rows += [(part, arm, task, mean) for task, mean in means]
                planned += summary.planned
                counted += summary.completed
        if scores:
            panels.append((part, scores, [_short(task) for task in (*tasks, MEAN)]))
    if not panels:
        return None
    words = _words("eval_before_after", planned=whole(planned), counted=whole(counted))
    record = _record(
        "eval_before_after",
        words,
        sources=tuple(EVALUATIONS[arm] for arm in evaluations),
        source_columns=("/summaries/*/tasks/*/mean_final_score", "/summaries/*/mean_final_score"),
        columns=("part", "arm", "task", "mean_final_score"),
        rows=rows,
    )

    def make_chart() -> Chart:
        size = Size(300, _SIZE.height)
        charts = [
            score_chart(scores, order, y_title=f"mean final_score, {part}", size=size) for part, scores, order in panels
        ]
        return beside(charts, spacing=36, title=_title(words["title"]))

    return Plot(record, make_chart)


def _action_plot(rollouts: pl.DataFrame) -> Plot | None:
    early, late = thirds(rollouts)
    phases = {"early training": early, "late training": late}
    shares: list[ActionShare] = []
    for phase, lines in phases.items():
        shares += action_shares(phase, lines["action_type"].to_list())
    if not shares:
        return None
    calls = len(early) + len(late)
    words = _words("action_distribution", calls=whole(calls))
    record = _record(
        "action_distribution",
        words,
        sources=(layout.ROLLOUTS,),
        source_columns=("trainer_step", "action_type"),
        columns=("phase", "action", "calls", "share"),
        rows=[tuple(share) for share in shares],
    )

    def make_chart() -> Chart:
        chart = action_chart(shares, [phase for phase, lines in phases.items() if len(lines)], size=Size(560, 130))
        return titled(chart, _title(words["title"]))

    return Plot(record, make_chart)


def _record(
    name: str,
    words: Mapping[str, str],
    *,
    sources: tuple[str, ...],
    source_columns: tuple[str, ...],
    columns: tuple[str, ...],
    rows: Sequence[tuple[Any, ...]],
) -> PlotRecord:
    return PlotRecord(
        path=f"plots/{name}.png",
        **words,
        sources=sources,
        source_columns=source_columns,
        columns=columns,
        rows=tuple(rows),
        data_sha256=digest([list(columns), [list(row) for row in rows]]),
    )


def _words(name: str, **numbers: str | int) -> dict[str, str]:
    words: dict[str, str] = orjson.loads((template_folder() / "plot_words.json").read_bytes())[name]
    return {**words, "caption": words["caption"].format(**numbers)}


def _title(text: str) -> dict[str, Any]:
    return {"text": text, "anchor": "start", "fontSize": 15, "fontWeight": 600, "offset": 14}


def _short(task: str) -> str:
    return task.rsplit("_", 1)[-1]


def _run_id(run: RunDirectory) -> str:
    if run.manifest is None:
        raise UnreadableError(
            f"{layout.MANIFEST} is missing or cannot be read",
            where=str(run.root / layout.MANIFEST),
            mend="Write the manifest before the pictures; `molforge-eval validate` names what is wrong with it.",
        )
    return run.manifest.run_id


def _signed_png(data: bytes, run_id: str, record: PlotRecord) -> bytes:
    from PIL import Image, PngImagePlugin

    chunks = PngImagePlugin.PngInfo()
    chunks.add_text("molforge:run_id", run_id)
    chunks.add_text("molforge:data_sha256", record.data_sha256)
    chunks.add_text("Software", SOFTWARE)
    chunks.add_text("Title", record.title)
    written = io.BytesIO()
    with Image.open(io.BytesIO(data)) as image:
        image.convert("RGB").save(written, format="PNG", pnginfo=chunks, optimize=False, dpi=(150, 150))
    return written.getvalue()
