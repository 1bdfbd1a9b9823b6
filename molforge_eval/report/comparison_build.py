"""Build a comparison: read and check every run, hold them against each other, write page, paper and evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field

from molforge_env.errors import MolForgeError, UnreadableError, UsageError
from molforge_env.frozen import FrozenModel
from molforge_eval.archive import NoRoomError
from molforge_eval.canonical import file_bytes
from molforge_eval.ladder import ladder
from molforge_eval.records.fields import utc_text
from molforge_eval.report.assembly import LONGEST_TITLE
from molforge_eval.report.build import paper_without_room
from molforge_eval.report.checking import CheckStage, OnEpisodes, check_run, refuse_change, state_of, without_packet
from molforge_eval.report.comparison_assembly import DEFAULT_TITLE, assemble_comparison
from molforge_eval.report.comparison_chart import NARROW, WIDE, comparison_chart, has_score
from molforge_eval.report.comparison_evidence import ComparisonEvidence
from molforge_eval.report.comparison_pages import render_comparison_page, write_comparison_sheet
from molforge_eval.report.delivery import deliver, made_folder, own_turn, refuse_inside
from molforge_eval.report.paper import OF_TEMPLATES, UNDATED, Enclosure, PaperLimits, PaperSize, Sheet, print_sheet
from molforge_eval.report.render import Svg, svg_of
from molforge_eval.report.rivals import Entry, Rival, enter_runs
from molforge_eval.report.template_faults import blamed_on, require_template
from molforge_eval.report.template_room import page_apart, sheet_apart
from molforge_eval.report.vega_lite import unchecked
from molforge_eval.run_directory import RunDirectory, load

COMPARISON_EVIDENCE = "comparison.json"
COMPARISON_HTML = "comparison.html"
COMPARISON_PDF = "comparison.pdf"
FEWEST_RUNS = 2
MOST_RUNS = 12

Stage = Literal["read", "compare", "draw", "page", "paper", "write"] | CheckStage
OnStage = Callable[[Stage], None]
OnRun = Callable[[int, int, str], None]


class ComparisonOptions(FrozenModel):
    """What a comparison is to be."""

    title: str = Field(default=DEFAULT_TITLE, min_length=1, max_length=LONGEST_TITLE)
    html: bool = True
    pdf: bool = True
    replay: bool = True
    """Play every episode of every run again, for level E3; otherwise the levels are at most E2."""
    paper_size: PaperSize = "A4"
    paper_limits: PaperLimits = PaperLimits()
    templates: Path | None = None
    """A folder whose templates stand for shipped ones of the same name; whoever names it is trusted with the page."""
    template_limits: PaperLimits = OF_TEMPLATES
    """What the templates of that folder may use, for the page and for the paper."""


class Comparison(NamedTuple):
    """A comparison that was written."""

    evidence: ComparisonEvidence
    evidence_file: Path
    html: Path | None
    """`None` when no page was asked for."""
    pdf: Path | None
    """`None` when no paper was asked for, or none could be made."""
    paper_fault: MolForgeError | None
    """Why there is no PDF although one was asked for."""
    run_faults: tuple[MolForgeError, ...]
    """Why runs could not be read; they stand in the list all the same."""

    @property
    def paths(self) -> dict[str, Path]:
        """The files that were written, by what they are: `evidence`, `html`, `pdf`."""
        named = {"evidence": self.evidence_file, "html": self.html, "pdf": self.pdf}
        return {name: path for name, path in named.items() if path is not None}


def compare_runs(
    runs: Sequence[Path | str],
    *,
    out: Path | str = ".",
    options: ComparisonOptions | None = None,
    on_run: OnRun | None = None,
    on_stage: OnStage | None = None,
    on_episodes: OnEpisodes | None = None,
) -> Comparison:
    """Compare runs and write the comparison.

    Args:
        runs: Two to twelve run directories, archives or packet PDFs; their order is that of the page, and no rank.
        out: Folder to write to; not one of the runs.
        options: What the comparison is to be.
        on_run: Called with the number of a run, the number of runs and its name before it is read; at the end with an
            empty name.
        on_stage: Called when a stage begins.
        on_episodes: Called with episodes of a run played again and its episodes in all.

    Returns:
        The evidence and the files. A run that cannot be read is named in `run_faults`, and stands on the page.

    Raises:
        UsageError: Fewer or more runs than can be compared, or a folder or template that cannot be used.
        UnreadableError: Fewer than two runs can be read, or there is no room to write.
    """
    options = ComparisonOptions() if options is None else options
    if options.templates is not None:
        require_template(options.templates, is_comparison=True)
    tell = on_stage or (lambda _stage: None)
    paths = [Path(run) for run in runs]
    with _folder_for(Path(out), paths) as folder:
        entries = []
        for number, path in enumerate(paths, start=1):
            if on_run is not None:
                on_run(number, len(paths), path.name or str(path))
            entries.append(_enter(path, options, tell, on_episodes))
        if on_run is not None:
            on_run(len(paths), len(paths), "")
        return _compare(entries, folder, options, tell)


def _compare(entries: Sequence[Entry], folder: Path, options: ComparisonOptions, tell: OnStage) -> Comparison:
    faults = tuple(entry.fault for entry in entries if entry.fault is not None)
    if len(entries) - len(faults) < FEWEST_RUNS:
        raise faults[0]
    tell("compare")
    rivals = enter_runs(entries)
    evidence = assemble_comparison(rivals, ladder(), title=options.title)
    own = file_bytes(evidence)
    page = paper = fault = None
    tell("draw")
    with unchecked():
        figures = draw_comparison(evidence)
    with blamed_on(options.templates):
        if options.html:
            tell("page")
            page = _write_page(evidence, figures, options)
        if options.pdf:
            tell("paper")
            paper, fault = _print(evidence, figures, own, rivals, options)
    tell("write")
    with own_turn(folder):
        deliver(folder, {COMPARISON_EVIDENCE: own, COMPARISON_HTML: page, COMPARISON_PDF: paper}, what="comparison")
    return Comparison(
        evidence=evidence,
        evidence_file=folder / COMPARISON_EVIDENCE,
        html=None if page is None else folder / COMPARISON_HTML,
        pdf=None if paper is None else folder / COMPARISON_PDF,
        paper_fault=fault,
        run_faults=faults,
    )


def _folder_for(out: Path, paths: Sequence[Path]) -> AbstractContextManager[Path]:
    if not FEWEST_RUNS <= len(paths) <= MOST_RUNS:
        runs = "1 run" if len(paths) == 1 else f"{len(paths)} runs"
        mend = f"Name {FEWEST_RUNS} to {MOST_RUNS} of them: molforge-report compare RUN RUN."
        raise UsageError(f"{runs} cannot be compared", where="RUN", mend=mend)
    for path in paths:
        refuse_inside(out, path, what="comparison")
    return made_folder(out)


def _enter(path: Path, options: ComparisonOptions, tell: OnStage, on_episodes: OnEpisodes | None) -> Entry:
    tell("read")
    try:
        state = state_of(path)
        loaded = load(path)
        checked = check_run(without_packet(loaded), replay=options.replay, on_stage=tell, on_episodes=on_episodes)
        refuse_change(path, state)
    except UnreadableError as error:
        if isinstance(error, NoRoomError) or not path.exists():
            # A name that was mistyped is said at once, before the other runs are played; a full disk says nothing of
            # a run.
            raise
        return Entry(path, None, error)
    # The logs have been checked, and nothing of them is compared: twelve long ones would not fit into memory.
    return Entry(path, checked._replace(run=_without_logs(checked.run)), None)


def _without_logs(run: RunDirectory) -> RunDirectory:
    lines, rows = run.rollouts.clear(), run.trainer_log.clear()
    return replace(run, rollouts=lines, every_rollout=lines, trainer_log=rows, every_trainer_row=rows)


def draw_comparison(evidence: ComparisonEvidence) -> Mapping[str, Svg]:
    """Draw the chart, wide and narrow; none when no run has a score."""
    if not has_score(evidence):
        return {}
    return {
        "ladder": svg_of(comparison_chart(evidence, size=WIDE), prefix="ladder"),
        "ladder_narrow": svg_of(comparison_chart(evidence, size=NARROW, legend_columns=3), prefix="ladder-narrow"),
    }


def _write_page(evidence: ComparisonEvidence, figures: Mapping[str, Svg], options: ComparisonOptions) -> bytes:
    if options.templates is None:
        return render_comparison_page(evidence, figures)
    return page_apart("comparison page", evidence, figures, templates=options.templates, limits=options.template_limits)


def _write_sheet(
    evidence: ComparisonEvidence, figures: Mapping[str, Svg], created: str, options: ComparisonOptions
) -> Sheet:
    size, templates = options.paper_size, options.templates
    if templates is None:
        return write_comparison_sheet(evidence, figures, created=created, size=size)
    limits = options.template_limits
    return sheet_apart(
        "comparison paper", evidence, figures, templates=templates, limits=limits, created=created, size=size
    )


def _print(
    evidence: ComparisonEvidence,
    figures: Mapping[str, Svg],
    own: bytes,
    rivals: Sequence[Rival],
    options: ComparisonOptions,
) -> tuple[bytes | None, MolForgeError | None]:
    created = _date(rivals)
    sheet = _write_sheet(evidence, figures, created, options)
    enclosure = Enclosure(COMPARISON_EVIDENCE, "Every number of this comparison", own)
    try:
        return print_sheet(sheet, (enclosure,), created, options.paper_limits), None
    except MolForgeError as error:
        return None, error
    except OSError as error:
        return None, paper_without_room(error)


def _date(rivals: Sequence[Rival]) -> str:
    manifests = [None if rival.checked is None else rival.checked.run.manifest for rival in rivals]
    moments = [found.ended_at or found.started_at for found in manifests if found is not None]
    return utc_text(max(moments)) if moments else UNDATED
