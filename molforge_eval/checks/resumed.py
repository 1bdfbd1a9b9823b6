"""Whether the rows that say that a run was resumed mark what they may: nothing else may be left out of a mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding
from molforge_eval.findings import Finding
from molforge_eval.resumes import MARKS, Resume, resumes_of, superseded_by
from molforge_eval.run_directory import RunDirectory

_CODE = "SUPERSEDED_DIFFERS"


def check(run: RunDirectory) -> Iterator[Finding]:
    """Hold the marks to the lines of the rollout log."""
    before = 0.0
    for resume in resumes_of(run.every_trainer_row):
        faults = list(_faults(resume, run.every_rollout, before)) if _has_mark(resume) else []
        for key, what in faults:
            yield finding(_CODE, what, file=layout.TRAINER_LOG, line=resume.line, pointer=f"/{key}")
        if not faults and resume.superseded_episodes and not _is_named(resume, run.every_trainer_row):
            what = f"training went on from step {resume.step}: {resume.superseded_episodes:g} episodes gave way"
            yield finding("STEPS_RESUMED", what, file=layout.TRAINER_LOG, line=resume.line, pointer="/step")
        before = max(before, resume.rollout_lines or 0.0)


def _is_named(resume: Resume, rows: pl.DataFrame) -> bool:
    """Tell whether steps that were logged were done twice, which the order of the rows shows."""
    earlier = rows.filter((pl.col("line") < resume.line) & pl.col("type").is_in(["train", "resume"]))
    return len(earlier) > 0 and earlier["step"][-1] > resume.step


def _has_mark(resume: Resume) -> bool:
    return resume.is_marked or resume.superseded_episodes is not None


def _faults(resume: Resume, lines: pl.DataFrame, before: float) -> Iterator[tuple[str, str]]:
    lengths, count = MARKS
    marked, stated = resume.rollout_lines, resume.superseded_episodes
    if marked is None or stated is None:
        missing = lengths if marked is None else count
        yield missing, f"the row says what it supersedes and has no number {missing}"
        return
    last: Any = lines["line"].max()
    most = float(last or 0)
    if not before <= marked <= most or marked != int(marked):
        yield lengths, f"rollout_lines is {marked:g}, here it can be a whole number from {before:g} to {most:g}"
        return
    given_way = lines.filter(superseded_by(resume).fill_null(value=False))["episode_id"].n_unique()
    if stated != given_way:
        yield count, f"superseded_episodes is {stated:g}, the lines before it from step {resume.step} hold {given_way}"
    later = lines.filter(pl.col("line") > marked)
    early = later.filter(pl.col("trainer_step") < resume.step)
    if len(early):
        step, line = early.select("trainer_step", "line").row(0)
        yield "step", f"the run went on from step {resume.step}, and line {line} after it is of step {step}"
    both = later.join(lines.filter(pl.col("line") <= marked), on="episode_id", how="semi")
    if len(both):
        episode = both["episode_id"][0]
        yield lengths, f"episode {episode} has lines before and after the {marked:g} lines that were there"
