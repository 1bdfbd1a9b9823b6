"""Which files a run of format version 0 has, which it lacks, and what it was asked to make."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.checks.presence import check_pointers
from molforge_eval.findings import Finding
from molforge_eval.records.old import (
    OldEpisode,
    OldEvaluation,
    OldManifest,
    OldRolloutLine,
    OldRun,
    OldSummary,
)
from molforge_eval.run_directory import RunDirectory

_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")
_SIDES = (("before", layout.BEFORE), ("after", layout.AFTER))
_MOST_KEYS = 5


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compare the files of an old run with what the public script leaves behind."""
    old = run.old
    if old is None:
        return
    yield from _check_files(run, old)
    yield from _check_evaluations(run, old)
    yield from _check_fields(old)
    yield from _check_strays(run, old)
    yield from check_pointers(run)


def _check_files(run: RunDirectory, old: OldRun) -> Iterator[Finding]:
    """Name what is absent; what the script writes only when something was logged is not missed without it."""
    wanted = [layout.MANIFEST, layout.SUMMARY, layout.ROLLOUTS, layout.ADAPTER_CONFIG, layout.ADAPTER_WEIGHTS]
    if old.trainer_source is None:
        wanted.append(layout.TRAINER_LOG)
    if len(run.rollouts):
        wanted += [layout.METRICS_TABLE, "plots/reward_curve.png", "plots/action_distribution.png"]
        if len(run.trainer_log):
            wanted.append("plots/loss_curve.png")
        if len(old.evaluations()) == len(_SIDES):
            wanted.append("plots/eval_before_after.png")
    for path in wanted:
        if path not in run.files and not run.may_lack(path):
            yield finding("ARTIFACT_MISSING", f"the run has no {path}", file=path)
    if old.trainer_source not in (None, layout.TRAINER_LOG):
        what = f"the rows of the trainer were read from {old.trainer_source}, for {layout.TRAINER_LOG} is not there"
        yield finding("TRAINER_LOG_REPLACED", what, file=old.trainer_source)


def _check_evaluations(run: RunDirectory, old: OldRun) -> Iterator[Finding]:
    for name, path in _SIDES:
        found: OldEvaluation | None = getattr(old, name)
        asked = None if old.manifest is None else getattr(old.manifest, f"run_{name}_eval")
        is_played = found is not None and bool(found.episodes)
        if is_played and asked is False:
            yield _unlike(f"run_{name}_eval is false, {path} holds episodes", name)
        if is_played:
            continue
        why = _why(found, is_there=path in run.files)
        if found is not None and found.skipped and asked:
            why += f", although run_{name}_eval is true"
        yield finding("EVALUATION_MISSING", f"{why}: the {name} evaluation is missing", file=path)
        if found is None:
            continue
        if found.average_final_score is not None:
            what = f"average_final_score is {seen(found.average_final_score)}, and there is no episode behind it"
            yield finding("AVERAGE_UNSUPPORTED", what, file=path, pointer="/average_final_score")


def _why(found: OldEvaluation | None, *, is_there: bool) -> str:
    if not is_there:
        return "the file is not there"
    if found is None:
        return "the file holds nothing that can be read as an evaluation"
    if found.skipped:
        return f"the evaluation was skipped, {seen(found.reason)}"
    if found.episodes is not None:
        return "the file holds an empty list of episodes"
    keys = [seen(key) for key in sorted(found.model_dump(exclude_unset=True))[:_MOST_KEYS]]
    return f"the file holds no episodes, only {', '.join(keys) or 'an empty object'}"


def _unlike(what: str, name: str) -> Finding:
    return finding("CONFIGURATION_DIFFERS", what, file=layout.MANIFEST, pointer=f"/run_{name}_eval")


def _check_fields(old: OldRun) -> Iterator[Finding]:
    """Name public keys that a record has not: what they would say was not looked at."""
    public = set(OldManifest.model_fields)
    if old.manifest is not None:
        yield from _lacking(layout.MANIFEST, "the manifest", public - old.manifest.model_fields_set)
    if old.summary is not None:
        lacking = set(OldSummary.model_fields) - old.summary.model_fields_set
        yield from _lacking(layout.SUMMARY, "the summary", lacking)
    for name, path in _SIDES:
        found: OldEvaluation | None = getattr(old, name)
        if found is None or not found.episodes:
            continue
        lacking = {"label", "average_final_score"} - found.model_fields_set
        public = set(OldEpisode.model_fields)
        lacking |= {f"episodes/*/{key}" for key in public if not any(key in e.model_fields_set for e in found.episodes)}
        yield from _lacking(path, "the evaluation", lacking)
    public = set(OldRolloutLine.model_fields)
    uses = {use.key: use for use in old.line_keys}
    if uses:
        lacking = {key for key in public if uses[key].lines == 0}
        yield from _lacking(layout.ROLLOUTS, "no line of the log", lacking, verb="has")
        for key in sorted(public - lacking):
            use = uses[key]
            if use.first_without is not None:
                what = f"key {seen(key)} is missing here, {use.lines} lines have it"
                yield finding("SCHEMA_UNMET", what, file=layout.ROLLOUTS, line=use.first_without)


def _lacking(path: str, words: str, keys: set[str], *, verb: str = "lacks") -> Iterator[Finding]:
    if keys:
        what = f"{words} {verb} {', '.join(sorted(keys))}; what depends on it was not checked"
        yield finding("FIELD_ABSENT", what, file=path)


def _check_strays(run: RunDirectory, old: OldRun) -> Iterator[Finding]:
    checkpoints: dict[str, list[str]] = {}
    for path in run.files.sizes:
        if layout.is_record(path) or path in layout.PACKET_FILES or path == old.trainer_source:
            continue
        parts = PurePosixPath(path).parts
        if len(parts) > 1 and (parts[0] == layout.TRAINER_FOLDER or parts[0].startswith("checkpoint-")):
            checkpoints.setdefault(parts[0], []).append(path)
        elif path.startswith(f"{layout.ADAPTER_FOLDER}/") and path.endswith(_PICKLES):
            yield from _check_pickle(run, path)
        else:
            yield finding("FILE_STRAY", "the file is no record of a run; it is neither sealed nor packed", file=path)
    for folder, paths in checkpoints.items():
        yield from _check_checkpoints(folder, paths)


def _check_pickle(run: RunDirectory, path: str) -> Iterator[Finding]:
    is_weights = PurePosixPath(path).name.startswith(("adapter_model", "pytorch_model"))
    if is_weights and layout.ADAPTER_WEIGHTS not in run.files:
        yield finding("WEIGHTS_PICKLED", "the weights are a pickle; it was not opened", file=path)
    else:
        yield finding("PICKLE_PRESENT", "the file is a pickle beside the weights; it was not opened", file=path)


def _check_checkpoints(folder: str, paths: list[str]) -> Iterator[Finding]:
    """The host trainer's own folder is named once, whatever it holds."""
    what = f"the folder holds {len(paths)} files of the host trainer; they are neither judged nor packed"
    yield finding("FILE_STRAY", what, file=folder)
    pickles = [path for path in paths if path.endswith(_PICKLES)]
    if pickles:
        what = f"the folder holds {len(pickles)} pickles, the first is {pickles[0]}; none was opened"
        yield finding("PICKLE_PRESENT", what, file=folder)
