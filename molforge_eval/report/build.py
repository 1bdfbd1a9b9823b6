"""Build the packet of a run: check it, judge it, assemble the evidence, make page and paper, and write them.

Everything is made before anything is written, and the files of an older packet go as the new ones come. The paper is
made in a process of its own, so that whatever becomes of it, the page stands.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Literal

from pydantic import Field

from molforge_env.errors import OUT_OF_SPACE, MolForgeError, UnreadableError, UsageError
from molforge_env.frozen import FrozenModel
from molforge_eval import layout
from molforge_eval.archive import pack_run
from molforge_eval.canonical import file_bytes
from molforge_eval.catalogue import printable
from molforge_eval.records.fields import utc_text
from molforge_eval.regeneration_models import Wish
from molforge_eval.report.assembly import DEFAULT_TITLE, LONGEST_TITLE, assemble_evidence
from molforge_eval.report.checking import CheckStage, OnEpisodes, check_run, refuse_change, state_of, without_packet
from molforge_eval.report.delivery import deliver, made_folder, own_turn, refuse_inside
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.figures import draw_figures
from molforge_eval.report.old_assembly import assemble_old_evidence
from molforge_eval.report.packet import Packet
from molforge_eval.report.page import render_page
from molforge_eval.report.paper import (
    OF_TEMPLATES,
    UNDATED,
    Enclosure,
    PaperError,
    PaperLimits,
    PaperSize,
    render_paper,
)
from molforge_eval.report.render import Svg
from molforge_eval.report.template_faults import blamed_on, require_template
from molforge_eval.report.template_room import page_apart
from molforge_eval.report.vega_lite import unchecked
from molforge_eval.run_directory import RunDirectory, load

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
_SAMPLES = 8
_SAMPLED_FROM = 4
"""A log of fewer chunks than this for each sample is compressed without being looked at first."""
_FAR = 1.5

Stage = Literal["read", "draw", "page", "paper", "write", "pack"] | CheckStage
OnStage = Callable[[Stage], None]


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
    """A folder whose templates stand for shipped ones of the same name; whoever names it is trusted with the page."""
    template_limits: PaperLimits = OF_TEMPLATES
    """What the templates of that folder may use, for the page and for the paper."""


def build_packet(
    run_dir: Path | str,
    *,
    out: Path | str | None = None,
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
        UnreadableError: The path is absent or holds nothing of a run, the run changed meanwhile, or there is no room to
            write.
        UsageError: There is no folder to write to, or it cannot be written; a template of the options does not work;
            or the memory does not hold the model.
    """
    options = PacketOptions() if options is None else options
    if options.templates is not None:
        require_template(options.templates, is_comparison=False)
    tell = on_stage or (lambda _stage: None)
    run_dir = Path(run_dir)
    with _folder_for(run_dir, None if out is None else Path(out)) as folder:
        return _build(run_dir, folder, options, tell, on_episodes)


def _build(
    run_dir: Path, folder: Path, options: PacketOptions, tell: OnStage, on_episodes: OnEpisodes | None
) -> Packet:
    tell("read")
    # Held until the end: an unpacked archive lives as long as the run that was read from it.
    state = state_of(run_dir)
    loaded = load(run_dir)
    run = without_packet(loaded)
    checked = check_run(run, replay=options.replay, wish=options.wish, on_stage=tell, on_episodes=on_episodes)
    assemble = assemble_old_evidence if run.format_version == 0 else assemble_evidence
    evidence = assemble(checked, title=options.title)
    tell("draw")
    with unchecked():
        figures = draw_figures(evidence) if options.html or options.pdf else {}
    own = file_bytes(evidence)
    page = paper = fault = None
    with blamed_on(options.templates):
        if options.html:
            tell("page")
            page = _write_page(evidence, figures, options)
        if options.pdf:
            tell("paper")
            paper, fault = _print_paper(run, evidence, figures, own, options)
    refuse_change(run_dir, state)
    tell("write")
    archive = None
    with own_turn(folder):
        deliver(folder, {layout.EVIDENCE: own, layout.PACKET_HTML: page, layout.PACKET_PDF: paper}, what="packet")
        if options.pack and run_dir.is_dir() and folder == run_dir:
            tell("pack")
            archive = _pack(run_dir)
    return Packet(
        evidence=evidence,
        evidence_file=folder / layout.EVIDENCE,
        html=None if page is None else folder / layout.PACKET_HTML,
        pdf=None if paper is None else folder / layout.PACKET_PDF,
        archive=archive,
        paper_fault=fault,
    )


def _write_page(evidence: Evidence, figures: Mapping[str, Svg], options: PacketOptions) -> bytes:
    if options.templates is None:
        return render_page(evidence, figures)
    return page_apart("page", evidence, figures, templates=options.templates, limits=options.template_limits)


def _print_paper(
    run: RunDirectory,
    evidence: Evidence,
    figures: Mapping[str, Svg],
    evidence_bytes: bytes,
    options: PacketOptions,
) -> tuple[bytes | None, MolForgeError | None]:
    """Print the paper; what keeps it from being made is returned, so that the page stands all the same."""
    own = Enclosure(layout.EVIDENCE, "Every number of this packet", evidence_bytes)
    try:
        paper = render_paper(
            evidence,
            figures,
            (own, *_enclosures(run, options)),
            created=_date(run),
            size=options.paper_size,
            limits=options.paper_limits,
            templates=options.templates,
            template_limits=options.template_limits,
        )
    except UsageError:
        raise
    except MolForgeError as error:
        return None, error
    except OSError as error:
        return None, paper_without_room(error)
    return paper, None


def paper_without_room(error: OSError) -> PaperError:
    """Say why the folder in which a paper is made could not be used."""
    where = str(error.filename or "temporary folder")
    mend = "Make room there, or name another folder by the variable TMPDIR."
    return PaperError(f"the PDF could not be made: {error.strerror or error}", where=where, mend=mend)


def _pack(run_dir: Path) -> Path:
    real = run_dir.resolve()
    # Beside the folder itself, and as near to how the run was named as that can be said.
    near = (folder for folder in (run_dir.parent, run_dir / "..") if folder.resolve() == real.parent)
    archive = next(near, real.parent) / f"{real.name}.zip"
    try:
        pack_run(run_dir, archive)
    except OSError as error:
        kind = UnreadableError if error.errno in OUT_OF_SPACE else UsageError
        raise kind(
            f"the archive cannot be written: {error.strerror or error}",
            where=printable(str(archive)),
            mend="The packet is written; leave the archive out with --no-pack.",
        ) from error
    return archive


def _folder_for(run_dir: Path, out: Path | None) -> AbstractContextManager[Path]:
    if out is not None and not (run_dir.is_dir() and out.is_dir() and out.samefile(run_dir)):
        refuse_inside(out, run_dir, what="packet")
        return made_folder(out)
    if run_dir.is_file():
        raise UsageError(
            f"{printable(run_dir.name)} is a file, and a packet is not written into one",
            where=str(run_dir),
            mend="Say where to write it: --out FOLDER.",
        )
    return nullcontext(run_dir)


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


def _is_far_too_large(run: RunDirectory, path: str, at_most: int) -> bool:
    """Tell by pieces from all over a long log that its compressed form is far beyond a limit."""
    size = run.files.sizes[path]
    if size < _SAMPLES * _SAMPLED_FROM * _CHUNK:
        return False
    packed = 0
    with run.files.open(path) as handle:
        for number in range(_SAMPLES):
            handle.seek(size // _SAMPLES * number)
            packed += len(zlib.compress(handle.read(_CHUNK), 9))
    return packed * size > _FAR * at_most * _SAMPLES * _CHUNK


def _compress(run: RunDirectory, path: str, *, at_most: int) -> bytes | None:
    """Compress a log, the same to the byte each time; `None` when it takes more than a limit."""
    if _is_far_too_large(run, path, at_most):
        return None
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
