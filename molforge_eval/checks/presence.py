"""Which files a run has, which it lacks, and which do not belong in it."""

from __future__ import annotations

from collections.abc import Iterator

from molforge_eval import layout
from molforge_eval.catalogue import finding
from molforge_eval.checks.tensors import POINTER_MARK
from molforge_eval.findings import Finding
from molforge_eval.run_directory import RunDirectory

_LARGEST_POINTER = 1_024
_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")
_NEEDED = {
    layout.MANIFEST: "MANIFEST_MISSING",
    layout.PLAN: "PLAN_MISSING",
    layout.CHECKSUMS: "CHECKSUMS_MISSING",
}
_EXPECTED = (
    layout.METRICS_TABLE,
    layout.SUMMARY,
    layout.PLOT_DATA,
    layout.ADAPTER_CONFIG,
    layout.ADAPTER_WEIGHTS,
    *layout.PLOTS,
)


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compare the files of a run with the layout."""
    for path, code in _NEEDED.items():
        if path not in run.files and not run.may_lack(path):
            yield finding(code, f"the run has no {path}", file=path)
    for path in _EXPECTED:
        if path not in run.files and not run.may_lack(path):
            yield finding("ARTIFACT_MISSING", f"the run has no {path}", file=path)
    yield from _check_logs(run)
    yield from _check_evaluations(run)
    yield from check_pointers(run)
    for path in run.files.sizes:
        if layout.is_record(path) or path == layout.CHECKSUMS or path in layout.PACKET_FILES:
            continue
        if run.stand_in is not None and path == run.stand_in.source:
            continue
        if path.startswith(f"{layout.ADAPTER_FOLDER}/") and path.endswith(_PICKLES):
            yield from _check_pickle(run, path)
        else:
            yield finding("FILE_STRAY", "the file is no record of a run; it is neither sealed nor packed", file=path)


def _check_logs(run: RunDirectory) -> Iterator[Finding]:
    steps = 0 if run.manifest is None else run.manifest.steps_completed
    for path in layout.LOGS:
        if path in run.files or run.may_lack(path):
            continue
        if path == layout.TRAINER_LOG and run.stand_in is not None:
            what = f"the rows of the trainer were read from {run.stand_in.source}, for {path} is not there"
            yield finding("TRAINER_LOG_REPLACED", what, file=run.stand_in.source)
            continue
        if steps:
            yield finding("LOG_MISSING", f"{steps} steps were completed and the run has no {path}", file=path)
        else:
            yield finding("ARTIFACT_MISSING", f"the run has no {path}", file=path)


def _check_evaluations(run: RunDirectory) -> Iterator[Finding]:
    for path, name in ((layout.BEFORE, "before"), (layout.AFTER, "after")):
        if path not in run.files:
            what = f"the {name} evaluation is missing, so there is no difference to speak of"
            yield finding("EVALUATION_MISSING", what, file=path)


def check_pointers(run: RunDirectory) -> Iterator[Finding]:
    """Find Git LFS pointers in place of records, as a checkout without large files has them.

    The weights are looked at apart.
    """
    for path, size in run.files.sizes.items():
        if size > _LARGEST_POINTER or not layout.is_record(path) or path == layout.ADAPTER_WEIGHTS:
            continue
        try:
            data = run.files.read(path, at_most=_LARGEST_POINTER)
        except OSError:
            # Named where the file is read for what it holds.
            continue
        if data is not None and data.startswith(POINTER_MARK):
            what = "the file is a Git LFS pointer in place of the record"
            yield finding("FILE_POINTER", what, file=path, line=1)


def _check_pickle(run: RunDirectory, path: str) -> Iterator[Finding]:
    if layout.ADAPTER_WEIGHTS in run.files:
        yield finding("PICKLE_PRESENT", "the file is a pickle beside the weights; it was not opened", file=path)
    else:
        yield finding("WEIGHTS_PICKLED", "the weights are a pickle; it was not opened", file=path)
