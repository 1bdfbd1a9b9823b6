"""Whether before and after can be compared (rule R5), and whether they are the two that they claim to be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen, short
from molforge_eval.checks.quantities import words_of
from molforge_eval.comparability import UNMERGED, list_differences, pointer_in_plan
from molforge_eval.findings import Finding
from molforge_eval.records import EpisodeRecord, Evaluation
from molforge_eval.run_directory import RunDirectory
from molforge_eval.strict_json import pointer_of

_CONSTANT_FROM = 10
"""Episodes from which one score everywhere, in both arms, is no coincidence."""
_SIDES = {
    "before": frozenset({"baseline", "initial", "pre", "untrained"}),
    "after": frozenset({"post"}),
}
"""Words of a label beside the name of its side. What was trained may stand on both: a model is trained before, too."""


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compare the two evaluations with each other and with the manifest."""
    yield from _check_places(run)
    yield from _check_policies(run)
    if run.before is None or run.after is None:
        return
    for difference in list_differences(run.before, run.after):
        pointer = _pointer_of(difference.key, run.after)
        yield finding("BEFORE_AFTER_UNLIKE", difference.text(), file=layout.AFTER, pointer=pointer)
    yield from _check_cells(run.before, run.after)
    yield from _check_effect(run.before, run.after)


def is_of_other_side(label: str, name: str) -> bool:
    """Tell whether the label of an evaluation says that it is the other one.

    >>> is_of_other_side("baseline", "after"), is_of_other_side("after_rl", "after"), is_of_other_side("rl", "before")
    (True, False, False)
    """
    words = words_of(label)
    said = {side for side, names in _SIDES.items() if side in label.lower() or not names.isdisjoint(words)}
    return bool(said) and name not in said


def _pointer_of(key: str, after: Evaluation) -> str:
    """Point at a key of the comparison."""
    if key.startswith("plan."):
        return f"/plan{pointer_in_plan(key, after.plan)}"
    return "/policy/adapter_merged" if key == UNMERGED else pointer_of(key.split("."))


def _check_places(run: RunDirectory) -> Iterator[Finding]:
    """Find evaluations that stand in each other's place."""
    for path, evaluation, name in ((layout.BEFORE, run.before, "before"), (layout.AFTER, run.after, "after")):
        if evaluation is None:
            continue
        if is_of_other_side(evaluation.label, name):
            what = f"the label is {seen(evaluation.label)}, the file is the {name} evaluation"
            yield finding("EVALUATIONS_SWAPPED", what, file=path, pointer="/label")
    if run.before is not None and run.after is not None and run.before.started_at > run.after.started_at:
        what = "the before evaluation was started later than the after evaluation"
        yield finding("EVALUATIONS_SWAPPED", what, file=layout.BEFORE, pointer="/started_at")


def _check_policies(run: RunDirectory) -> Iterator[Finding]:
    """Hold the adapters that were evaluated to those that went into training and came out of it."""
    if run.manifest is None:
        return
    sides = (
        (layout.BEFORE, run.before, "input", run.manifest.input_adapter),
        (layout.AFTER, run.after, "output", run.manifest.output_adapter),
    )
    for path, evaluation, side, adapter in sides:
        if evaluation is None:
            continue
        if evaluation.policy.kind != "hf":
            what = "the evaluation was played by a script, not by the model of the run"
            yield finding("POLICY_ADAPTER_DIFFERS", what, file=path, pointer="/policy/kind")
            continue
        played, trained = evaluation.policy.adapter_sha256, None if adapter is None else adapter.sha256
        if played != trained:
            names = ["none" if value is None else short(value) for value in (played, trained)]
            what = f"the evaluation played adapter {names[0]}, the run's {side} adapter is {names[1]}"
            yield finding("POLICY_ADAPTER_DIFFERS", what, file=path, pointer="/policy/adapter_sha256")
        base = run.manifest.base_model_sha256
        if base is not None and evaluation.policy.base_model_sha256 != base:
            what = "the base model that was evaluated is not the one that was trained"
            yield finding("POLICY_BASE_DIFFERS", what, file=path, pointer="/policy/base_model_sha256")
        stated, played_on = run.manifest.configuration.base_model, evaluation.policy.base_model
        # A record shows a path without the folders of a person's home, which one of them may have and the other not.
        if played_on is not None and PurePosixPath(played_on).name != PurePosixPath(stated).name:
            what = f"the evaluation names base model {seen(played_on)}, the run {seen(stated)}"
            yield finding("POLICY_BASE_DIFFERS", what, file=path, pointer="/policy/base_model")


def _check_cells(before: Evaluation, after: Evaluation) -> Iterator[Finding]:
    """Compare what each pair of episodes was given: task, horizon, budget and the words of the prompt."""
    first = {(episode.part, episode.scenario_id, episode.seed): episode for episode in before.episodes}
    for index, episode in enumerate(after.episodes):
        pair = first.get((episode.part, episode.scenario_id, episode.seed))
        if pair is None:
            continue
        unlike = [key for key in ("scenario", "reward_mode") if getattr(pair, key) != getattr(episode, key)]
        if _opening(pair) != _opening(episode):
            unlike.append("turns/0/prompt")
        for key in unlike:
            what = f"{key} is not that of the same episode in the before evaluation"
            place = f"/episodes/{index}/{key}"
            yield finding("BEFORE_AFTER_UNLIKE", what, file=layout.AFTER, pointer=place, episode=episode.episode_id)


def _opening(episode: EpisodeRecord) -> str | None:
    return episode.turns[0].prompt if episode.turns else None


def _check_effect(before: Evaluation, after: Evaluation) -> Iterator[Finding]:
    """Find an after that is the before again, and a grader that knows one score."""
    if _conduct(before) == _conduct(after) and before.episodes:
        what = f"all {len(after.episodes)} episodes are call for call those of the before evaluation"
        yield finding("EVALUATIONS_EQUAL", what, file=layout.AFTER, pointer="/episodes")
    graded = [episode for episode in (*before.episodes, *after.episodes) if episode.scores is not None]
    scores = {episode.final_score for episode in graded}
    tasks = {episode.scenario_id for episode in graded}
    if len(graded) >= _CONSTANT_FROM and len(scores) == 1 and len(tasks) > 1:
        what = f"all {len(graded)} graded episodes over {len(tasks)} tasks have final_score {scores.pop()}"
        yield finding("SCORE_CONSTANT", what, file=layout.AFTER, pointer="/episodes")


def _conduct(evaluation: Evaluation) -> list[tuple[object, ...]]:
    """What was done, without names, hashes and times."""
    return [
        (
            episode.part,
            episode.scenario_id,
            episode.seed,
            tuple((step.tool, repr(step.arguments), step.reward) for step in episode.steps),
            tuple(turn.raw_completion for turn in episode.turns),
            episode.final_score,
        )
        for episode in evaluation.episodes
    ]
