"""A run of format version 0, read: the layout of the public training script, and of those who changed it a little."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding
from molforge_eval.ledger import Ledger
from molforge_eval.limits import Limits
from molforge_eval.log_tables import fits
from molforge_eval.old_rollouts import read_old_rollouts
from molforge_eval.old_trainer_log import OldTrainerLog, read_old_trainer_log, split_gaps
from molforge_eval.record_files import read_json, read_record, record_of
from molforge_eval.records.old import OldEvaluation, OldManifest, OldRun, OldSummary
from molforge_eval.run_files import RunFiles

_NEVER_THERE = (layout.PLAN, layout.CHECKSUMS, layout.PLOT_DATA)


class OldRecords(NamedTuple):
    """A run of format version 0: its records, and its logs as the tables of this version."""

    run: OldRun
    trainer: OldTrainerLog
    rollouts: pl.DataFrame


def read_old_run(files: RunFiles, ledger: Ledger, limits: Limits) -> OldRecords:
    """Read everything that a run of format version 0 says."""
    what = (
        f"the run has format version 0, which has no {', no '.join(_NEVER_THERE)}, no seeds and no episode ids: "
        "what it claims was checked, and no episode of it can be played again"
    )
    ledger.add(finding("FORMAT_OLD", what))
    trainer = read_old_trainer_log(files, ledger, limits)
    rollouts = read_old_rollouts(files, ledger, limits)
    run = OldRun(
        manifest=read_record(files, layout.MANIFEST, "run_manifest_v0", OldManifest, ledger, limits),
        before=read_record(files, layout.BEFORE, "evaluation_v0", OldEvaluation, ledger, limits),
        after=read_record(files, layout.AFTER, "evaluation_v0", OldEvaluation, ledger, limits),
        summary=_read_summary(files, ledger, limits),
        trainer_source=trainer.source,
        trainer_form=trainer.form,
        trainer_state=trainer.state,
        lines_left_out=rollouts.left_out,
        line_keys=rollouts.keys,
        line_names=rollouts.names,
    )
    return OldRecords(run, trainer, rollouts.frame)


def _read_summary(files: RunFiles, ledger: Ledger, limits: Limits) -> OldSummary | None:
    """Read the summary; it repeats a row of the trainer's log, whose gaps are judged where they first stand."""
    path = layout.SUMMARY
    if path not in files:
        return None
    silent = Ledger(limits.findings_a_code)
    parsed = read_json(files, path, silent, limits)
    if not parsed.faults:
        ledger.extend(silent.findings())
    _, faults = split_gaps(parsed.faults, "/latest_trainer_log")
    for fault in faults:
        ledger.add(finding(fault.code, fault.what, file=path, pointer=fault.pointer))
    if not parsed.usable or not fits(parsed.value, "run_summary_v0", path, None, ledger):
        return None
    return record_of(parsed.value, path, OldSummary, ledger)
