"""A run directory, read: models of its records, tables of its logs, and what was wrong with any of them.

Reading never raises for bad evidence: a record that cannot be used is `None`, a line that cannot be used is left out,
and both are named in the findings. Only a directory that is absent, or that holds nothing of a run, is an error.
"""

from __future__ import annotations

import shlex
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import polars as pl

from molforge_env.errors import UnreadableError
from molforge_eval import layout
from molforge_eval.archive import unpack_archive
from molforge_eval.catalogue import printable
from molforge_eval.findings import Finding
from molforge_eval.ledger import Ledger
from molforge_eval.limits import DEFAULT_LIMITS, Limits
from molforge_eval.log_tables import read_rollouts, read_trainer_log
from molforge_eval.old_run import read_old_run
from molforge_eval.old_trainer_log import Form, find_source, read_old_trainer_log
from molforge_eval.packet_pdf import is_pdf, unpack_packet
from molforge_eval.record_files import read_json, read_record
from molforge_eval.records import Checksums, Evaluation, EvaluationPlan, PlotTable, RunManifest, RunSummary
from molforge_eval.records.artifacts import PrintedPage
from molforge_eval.records.old import OldRun
from molforge_eval.resumes import standing_of
from molforge_eval.run_files import RunFiles, list_run
from molforge_eval.scratch import remove_scratch

_SHOWN_RUNS = 3


class StandIn(NamedTuple):
    """A file that was read in place of the trainer log."""

    source: str
    form: Form


@dataclass(frozen=True)
class RunDirectory:
    """Everything that a run says, as far as it could be read."""

    root: Path
    """The directory; for an archive the folder that it was unpacked into."""
    name: str
    """Name of the directory or archive."""
    format_version: Literal[0, 1]
    files: RunFiles
    manifest: RunManifest | None
    plan: EvaluationPlan | None
    before: Evaluation | None
    after: Evaluation | None
    trainer_log: pl.DataFrame
    """One row a line, those that stand; columns of `log_tables.TRAINER_HEAD`, then the trainer's own keys."""
    latest_trainer_row: Mapping[str, Any] | None
    """The last row of type `train`, as it was written; in format version 0 the last row of any type."""
    rollouts: pl.DataFrame
    """One row a line, those that stand: what a resume superseded is left out. Columns of
    `rollout_table.ROLLOUT_SCHEMA`."""
    every_rollout: pl.DataFrame
    """All lines of the rollout log."""
    every_trainer_row: pl.DataFrame
    """All rows of the trainer log, those of type `resume` among them."""
    summary: RunSummary | None
    checksums: Checksums | None
    plot_table: PlotTable | None
    findings: tuple[Finding, ...]
    """What reading and the schemas found."""
    omitted: Mapping[str, int]
    """Findings beyond the limit, by code."""
    limits: Limits
    stand_in: StandIn | None = None
    """The file of the host trainer that was read for an absent trainer log; of format version 0 see `old`."""
    old: OldRun | None = None
    """The records of a run of format version 0, whose `manifest`, `before`, `after` and `summary` here are `None`."""
    is_packet: bool = False
    """Whether it was read from what is attached to a packet PDF."""
    first_page: PrintedPage | None = None
    """Of a packet PDF, its first page."""

    def may_lack(self, path: str) -> bool:
        """Tell whether a file may be absent because what was read is a packet, which carries the other records."""
        return self.is_packet and (path in layout.LOGS or path not in layout.ENCLOSURES.values())

    def lacks_a_log(self) -> bool:
        """Tell whether a packet was made without a log, so that it says nothing of training."""
        if self.old is not None:
            return self.is_packet and (layout.ROLLOUTS not in self.files or self.old.trainer_source is None)
        return self.is_packet and any(path not in self.files for path in layout.LOGS)

    def evaluations(self) -> tuple[tuple[str, Evaluation], ...]:
        """Return path and evaluation of those that could be read, before first."""
        pairs = ((layout.BEFORE, self.before), (layout.AFTER, self.after))
        return tuple((path, evaluation) for path, evaluation in pairs if evaluation is not None)


_REFUSED = ("ARCHIVE_MEMBER", "ARCHIVE_TOO_LARGE", "DIRECTORY_", "FILE_LINKED", "FILE_SPECIAL", "FILE_TOO_", "FILE_UN")
"""How the codes begin of what was there and was not read."""


def load(path: Path, limits: Limits = DEFAULT_LIMITS) -> RunDirectory:
    """Read a run directory, a zip archive of one, or what is attached to a packet PDF.

    Args:
        path: The directory, the archive or the PDF.
        limits: Bounds on what is read.

    Raises:
        UnreadableError: The path is absent or unreadable, or holds nothing of a run.
    """
    ledger = Ledger(limits.findings_a_code)
    if not path.is_file():
        return _load_folder(path, path, ledger, limits)
    first_page = None
    is_packet = is_pdf(path)
    if is_packet:
        unpacked, first_page = unpack_packet(path, limits)
    else:
        unpacked = unpack_archive(path, limits)
    ledger.extend(unpacked.findings)
    try:
        run = _load_folder(path, unpacked.root, ledger, limits)
        run = replace(run, is_packet=is_packet, first_page=first_page)
    except BaseException:
        remove_scratch(unpacked.holder)
        raise
    weakref.finalize(run, remove_scratch, unpacked.holder)
    return run


def _load_folder(path: Path, root: Path, ledger: Ledger, limits: Limits) -> RunDirectory:
    files = list_run(root, limits)
    ledger.extend(files.findings)
    if not any(layout.is_record(name) for name in files.sizes):
        raise _holding_none(path, files, ledger.findings())
    if _format_version(files, limits) == 0:
        return _load_old(path, files, ledger, limits)
    trainer = read_trainer_log(files, ledger, limits)
    manifest = read_record(files, layout.MANIFEST, "run_manifest", RunManifest, ledger, limits)
    rows, stand_in = trainer.frame, None
    if layout.TRAINER_LOG not in files and find_source(files) is not None:
        found = read_old_trainer_log(files, ledger, limits)
        # The host writes no run id; that the rows are of this run is what their place says.
        run_id = None if manifest is None else manifest.run_id
        rows = found.frame.with_columns(pl.col("run_id").fill_null(pl.lit(run_id, dtype=pl.String)))
        stand_in = StandIn(str(found.source), found.form)
    rollouts = read_rollouts(files, ledger, limits)
    standing = standing_of(rollouts, rows)
    return RunDirectory(
        root=root,
        name=path.name,
        format_version=1,
        files=files,
        manifest=manifest,
        plan=read_record(files, layout.PLAN, "eval_plan", EvaluationPlan, ledger, limits),
        before=read_record(files, layout.BEFORE, "evaluation", Evaluation, ledger, limits),
        after=read_record(files, layout.AFTER, "evaluation", Evaluation, ledger, limits),
        trainer_log=standing.trainer_log,
        latest_trainer_row=trainer.latest,
        rollouts=standing.rollouts,
        every_rollout=rollouts,
        every_trainer_row=rows,
        summary=read_record(files, layout.SUMMARY, "run_summary", RunSummary, ledger, limits),
        checksums=read_record(files, layout.CHECKSUMS, "checksums", Checksums, ledger, limits),
        plot_table=read_record(files, layout.PLOT_DATA, "plot_data", PlotTable, ledger, limits),
        findings=ledger.findings(),
        omitted=ledger.omitted(),
        limits=limits,
        stand_in=stand_in,
    )


def _holding_none(path: Path, files: RunFiles, found: Sequence[Finding]) -> UnreadableError:
    """Say what a folder holds that is no run; one of several runs is a mistake that people make."""
    what, mend = f"{path} holds none of the files of a run", f"Name the folder that holds {layout.MANIFEST}."
    refused = [item for item in found if item.code.startswith(_REFUSED)]
    if path.is_dir():
        # What is not followed in a folder of something else says nothing of a run.
        refused = [item for item in refused if item.where.file is None or layout.leads_to_record(item.where.file)]
    if refused:
        first, more = refused[0], f", and {len(refused) - 1} more" if len(refused) > 1 else ""
        what += f": {first.where.file or first.code} was refused ({first.what}){more}"
        mend = first.mend
    parts = [name.partition("/") for name in files.sizes]
    inside = sorted({folder for folder, _, rest in parts if layout.is_record(rest)})
    if len(inside) > 1:
        shown = ", ".join(inside[:_SHOWN_RUNS]) + (", …" if len(inside) > _SHOWN_RUNS else "")
        what = f"{path} is no run and holds {len(inside)} of them: {printable(shown)}"
        mend = "Unpack it and name each of them."
        if path.is_dir():
            mend = f"Name each of them: molforge-eval validate {shlex.quote(f'{path}/*')}"
    elif inside and path.is_dir():
        mend = f"Name the folder in it: {shlex.quote(str(path / inside[0]))}"
    elif path.is_dir() and layout.PACKET_PDF in files.sizes:
        mend = f"Name the packet in it: {shlex.quote(str(path / layout.PACKET_PDF))}"
    return UnreadableError(what, where=str(path), mend=mend)


def _format_version(files: RunFiles, limits: Limits) -> Literal[0, 1]:
    """Tell the layout: 1 as soon as anything in the run claims it, so that no record escapes by losing its manifest."""
    if any(path in files for path in (layout.CHECKSUMS, layout.PLAN, layout.PLOT_DATA)):
        return 1
    silent = Ledger()
    for path in (layout.MANIFEST, layout.SUMMARY, *layout.EVALUATIONS):
        value = read_json(files, path, silent, limits).value if path in files else None
        if isinstance(value, Mapping) and value.get("format_version", 0) != 0:
            return 1
    for path in layout.LOGS:
        if path in files and b'"format_version"' in _head(files, path):
            return 1
    return 0


def _head(files: RunFiles, path: str) -> bytes:
    try:
        with files.open(path) as handle:
            return handle.read(2**16)
    except OSError:
        return b""


def _load_old(path: Path, files: RunFiles, ledger: Ledger, limits: Limits) -> RunDirectory:
    records = read_old_run(files, ledger, limits)
    return RunDirectory(
        root=files.root,
        name=path.name,
        format_version=0,
        files=files,
        manifest=None,
        plan=None,
        before=None,
        after=None,
        trainer_log=records.trainer.frame,
        latest_trainer_row=records.trainer.latest,
        rollouts=records.rollouts,
        every_rollout=records.rollouts,
        every_trainer_row=records.trainer.frame,
        summary=None,
        checksums=None,
        plot_table=None,
        findings=ledger.findings(),
        omitted=ledger.omitted(),
        limits=limits,
        old=records.run,
    )
