"""Build the packet of a run: check it, judge it, assemble the evidence, write page and paper.

Each file is written whole or not at all. The page is written before the paper is tried, so that whatever becomes of the
paper, the page stands.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field

from molforge_env.errors import MolForgeError, UsageError
from molforge_env.frozen import FrozenModel
from molforge_eval import layout
from molforge_eval.archive import pack_run
from molforge_eval.canonical import file_bytes
from molforge_eval.ladder import ladder
from molforge_eval.records.fields import utc_text
from molforge_eval.records.identity import ArtifactChecksum
from molforge_eval.regeneration_models import Wish
from molforge_eval.replay import verify_loaded
from molforge_eval.report.assembly import DEFAULT_TITLE, LONGEST_TITLE, Checked, assemble_evidence
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.figures import draw_figures
from molforge_eval.report.old_assembly import assemble_old_evidence
from molforge_eval.report.page import render_page
from molforge_eval.report.paper import UNDATED, Enclosure, PaperLimits, PaperSize, render_paper
from molforge_eval.report.render import Svg
from molforge_eval.run_directory import RunDirectory, load
from molforge_eval.sealing import checksum_of, root_of, write_whole
from molforge_eval.validate import validate_loaded
from molforge_eval.verdict import decide

ENCLOSED = {
    layout.MANIFEST: "What was asked for, on what, and what came out",
    layout.PLAN: "What was to be played and how it is judged",
    layout.BEFORE: "Every evaluation episode before training",
    layout.AFTER: "Every evaluation episode after training",
    layout.CHECKSUMS: "Hashes of the records",
    layout.SUMMARY: "Aggregates of the run",
    layout.PLOT_DATA: "The data behind the pictures of the run",
    layout.TRAINER_LOG: "Every row of the trainer's log, compressed",
    layout.ROLLOUTS: "Every tool call of training, compressed",
    layout.TRAINER_STATE: "The host trainer's own state, in place of its log",
}
"""Records that travel inside the PDF, and what each is."""
LOG_BYTES = 10 * 2**20
"""Most bytes of the compressed logs, both together, in a PDF that is to be passed on."""

_GZIP = 31
_CHUNK = 2**20

Stage = Literal["read", "check", "judge", "draw", "page", "paper", "pack"]
OnStage = Callable[[Stage], None]
OnEpisodes = Callable[[int, int], None]


class PacketOptions(FrozenModel):
    """What a packet is to be."""

    title: str = Field(default=DEFAULT_TITLE, min_length=1, max_length=LONGEST_TITLE)
    html: bool = True
    pdf: bool = True
    replay: bool = True
    """Play every episode again, for level E3; otherwise the level is at most E2."""
    wish: Wish | None = None
    """Have the run's model play again, for level E4; means nothing without `replay`."""
    paper_size: PaperSize = "A4"
    paper_limits: PaperLimits = PaperLimits()
    log_bytes: int = Field(default=LOG_BYTES, ge=0)
    """Compressed logs of more bytes stay out of the PDF, which then shows level E3 for the evaluation only."""
    pack: bool = True
    """Make the archive beside the run again, with the packet in it."""
    templates: Path | None = None
    """A folder whose templates stand for shipped ones of the same name."""


class Packet(NamedTuple):
    """What was written."""

    evidence: Evidence
    evidence_file: Path
    html: Path | None
    pdf: Path | None
    archive: Path | None
    paper_fault: MolForgeError | None
    """Why there is no PDF although one was asked for."""

    def _repr_html_(self) -> str:
        """Show the verdict and where the files are, in a notebook."""
        files = [path for path in (self.html, self.pdf, self.evidence_file) if path is not None]
        items = "".join(f"<li><code>{escape(str(path))}</code></li>" for path in files)
        outcome = escape(self.evidence.verdict.outcome)
        level = escape(self.evidence.level.level or "no level")
        return f"<p><strong>{outcome}</strong>, evidence level {level}</p><ul>{items}</ul>"


def build_packet(
    run_dir: Path,
    *,
    out: Path | None = None,
    options: PacketOptions | None = None,
    on_stage: OnStage | None = None,
    on_episodes: OnEpisodes | None = None,
) -> Packet:
    """Build the packet of a run and write it.

    Args:
        run_dir: A run directory, a zip archive of one, or its packet PDF.
        out: Folder to write to; the run directory itself when absent.
        options: What the packet is to be.
        on_stage: Called when a stage begins.
        on_episodes: Called with episodes played again and episodes in all.

    Returns:
        The evidence and the files. A PDF that could not be made is named in `paper_fault`; nothing is written half.

    Raises:
        UnreadableError: The path is absent or holds nothing of a run.
        UsageError: There is no folder to write to, or it cannot be written, or the memory does not hold the model.
    """
    options = PacketOptions() if options is None else options
    tell = on_stage or (lambda _stage: None)
    folder = _folder_for(run_dir, out)
    tell("read")
    # Held until the end: an unpacked archive lives as long as the run that was read from it.
    loaded = load(run_dir)
    run = _without_packet(loaded)
    tell("check")
    checked = _check(run, options, on_episodes, tell)
    assemble = assemble_old_evidence if run.format_version == 0 else assemble_evidence
    evidence = assemble(checked, title=options.title)
    tell("draw")
    figures = draw_figures(evidence) if options.html or options.pdf else {}
    evidence_bytes = file_bytes(evidence)
    _write(folder / layout.EVIDENCE, evidence_bytes)
    page, paper = folder / layout.PACKET_HTML, folder / layout.PACKET_PDF
    html = pdf = archive = fault = None
    if options.html:
        tell("page")
        html = page
        _write(html, render_page(evidence, figures, templates=options.templates))
    if options.pdf:
        tell("paper")
        try:
            _write(paper, _print_paper(run, evidence, figures, evidence_bytes, options))
            pdf = paper
        except MolForgeError as error:
            fault = error
    for older, made in ((page, html), (paper, pdf)):
        if made is None:
            # A file of an older packet would speak of another state of the run.
            older.unlink(missing_ok=True)
    if options.pack and run_dir.is_dir() and folder == run_dir:
        tell("pack")
        archive = _pack(run_dir)
    return Packet(evidence, folder / layout.EVIDENCE, html, pdf, archive, fault)


def _print_paper(
    run: RunDirectory,
    evidence: Evidence,
    figures: Mapping[str, Svg],
    evidence_bytes: bytes,
    options: PacketOptions,
) -> bytes:
    return render_paper(
        evidence,
        figures,
        (Enclosure(layout.EVIDENCE, "Every number of this packet", evidence_bytes), *_enclosures(run, options)),
        created=_date(run),
        size=options.paper_size,
        limits=options.paper_limits,
        templates=options.templates,
    )


def _pack(run_dir: Path) -> Path:
    archive = run_dir.resolve().with_name(f"{run_dir.resolve().name}.zip")
    try:
        pack_run(run_dir, archive)
    except OSError as error:
        raise UsageError(
            f"the archive cannot be written: {error.strerror or error}",
            where=str(archive),
            mend="The packet is written; leave the archive out with --no-pack.",
        ) from error
    return archive


def _write(path: Path, data: bytes) -> None:
    try:
        write_whole(path, data)
    except OSError as error:
        raise UsageError(
            f"the packet cannot be written: {error.strerror or error}",
            where=str(path),
            mend="Say where to write it: --out FOLDER.",
        ) from error


def _folder_for(run_dir: Path, out: Path | None) -> Path:
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"the folder {out} cannot be made: {error.strerror}",
                where="--out",
                mend="Name a folder that you may write.",
            ) from error
        return out
    if run_dir.is_file():
        raise UsageError(
            f"{run_dir.name} is a file, and a packet is not written into one",
            where=str(run_dir),
            mend="Say where to write it: --out FOLDER.",
        )
    return run_dir


def _without_packet(run: RunDirectory) -> RunDirectory:
    """Look away from an older packet: it will be replaced, and must not leave a trace in the new one.

    One that is itself the input is evidence, and is checked with the rest.
    """
    if run.is_packet:
        return run
    sizes = {path: size for path, size in run.files.sizes.items() if path not in layout.PACKET_FILES}
    return replace(run, files=replace(run.files, sizes=sizes))


def _check(run: RunDirectory, options: PacketOptions, on_episodes: OnEpisodes | None, tell: OnStage) -> Checked:
    is_replayed = options.replay and run.format_version == 1
    result = verify_loaded(run, wish=options.wish, on_progress=on_episodes) if is_replayed else validate_loaded(run)
    tell("judge")
    files = _hash_records(run)
    rungs = ladder()
    verdict = None
    if run.plan is not None:
        verdict = decide(run.before, run.after, run.plan, result.findings, ladder=rungs)
    return Checked(
        run=run,
        files=files,
        root_sha256=root_of(files) if files else None,
        result=result,
        replayed=is_replayed,
        verdict=verdict,
        ladder=rungs,
    )


def _hash_records(run: RunDirectory) -> tuple[ArtifactChecksum, ...]:
    entries = []
    for path in sorted(run.files.sizes):
        if layout.is_record(path):
            try:
                entries.append(checksum_of(run.files, path))
            except OSError:
                # Validation has named it; a file that cannot be read has no hash to print.
                continue
    if run.is_packet and run.checksums is not None:
        # What a packet does not carry stands in its seal alone.
        entries += [entry for entry in run.checksums.files if entry.path not in run.files and run.may_lack(entry.path)]
    return tuple(sorted(entries, key=lambda entry: entry.path))


def _enclosures(run: RunDirectory, options: PacketOptions) -> tuple[Enclosure, ...]:
    names = {path: name for name, path in layout.ENCLOSURES.items()}
    found: list[Enclosure] = []
    logs: list[Enclosure] = []
    room = options.log_bytes
    for path, words in ENCLOSED.items():
        try:
            if path not in run.files:
                continue
            if path in layout.LOGS:
                data = _compress(run, path, at_most=room)
                room -= 0 if data is None else len(data)
            else:
                data = run.files.read(path, at_most=run.limits.file_bytes)
        except OSError:
            continue
        if data is not None:
            (logs if path in layout.LOGS else found).append(Enclosure(names[path], words, data))
    # One log without the other says nothing that could be checked.
    is_whole = len(logs) == sum(path in run.files for path in layout.LOGS)
    return (*found, *(logs if is_whole else ()))


def _compress(run: RunDirectory, path: str, *, at_most: int) -> bytes | None:
    """Compress a log, the same to the byte each time; `None` when it takes more than a limit."""
    deflater = zlib.compressobj(9, zlib.DEFLATED, _GZIP)
    pieces: list[bytes] = []
    size = 0
    with run.files.open(path) as handle:
        while chunk := handle.read(_CHUNK):
            pieces.append(deflater.compress(chunk))
            size += len(pieces[-1])
            if size > at_most:
                return None
    pieces.append(deflater.flush())
    return b"".join(pieces) if size + len(pieces[-1]) <= at_most else None


def _date(run: RunDirectory) -> str:
    if run.manifest is None:
        return UNDATED
    return utc_text(run.manifest.ended_at or run.manifest.started_at)
