"""Regeneration: base model and adapter are loaded, and the greedy episodes of both evaluations are played again.

What it shows is level E4: the recorded greedy play is the adapter's own. It is asked for, never done unasked, since it
needs a model; and it begins only where E3 was reached, since a record that the laboratory denies needs no model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from molforge_env import __version__
from molforge_eval import layout
from molforge_eval.catalogue import Level, finding
from molforge_eval.findings import Finding
from molforge_eval.model_loading import find_folder, is_out_of_memory
from molforge_eval.policies import require_model_packages
from molforge_eval.records.evaluation import Evaluation
from molforge_eval.regenerated_episode import EpisodeTask, Regenerated, Speaker, regenerate_episode
from molforge_eval.regeneration_models import Obstacle, Wish, out_of_memory, recorded_speaker
from molforge_eval.run_directory import RunDirectory

NEAR_TOKENS = 50
"""One near choice in so many tokens is what rounding makes; an adapter whose logits are flat makes every token near."""
_HIGHEST = "E4 is the highest level; the sampled episodes, the losses and a choice among several runs stay unshown"


class Regeneration(NamedTuple):
    """What playing a run's greedy episodes again gave."""

    findings: tuple[Finding, ...]
    counts: dict[str, int]
    """Evaluations, episodes and turns that came out again."""
    reached: Level
    reason: str
    """Why the level is not higher."""


class _Part(NamedTuple):
    """What one evaluation gave."""

    findings: tuple[Finding, ...]
    episodes: int
    """Episodes that came out again to the end."""
    turns: int
    obstacle: str | None
    """Why it did not come out again; `None` when it did."""


def open_wish(*, base_model: str | None = None, input_adapter: str | None = None, device: str = "auto") -> Wish:
    """Take down what regeneration may use besides the run.

    Args:
        base_model: Folder or hub name of the base model; `None` takes the one that the run names, if it is here.
        input_adapter: Folder or hub name of the adapter that the run began with; `None` as above.
        device: Where the model runs.

    Raises:
        MissingDependencyError: The packages that run a model are not installed.
        UsageError: A folder is absent.
    """
    require_model_packages("regeneration of an evaluation")
    return Wish(
        base=None if base_model is None else find_folder(base_model, "model"),
        input_adapter=None if input_adapter is None else find_folder(input_adapter, "adapter"),
        device=device,
    )


def count_greedy(run: RunDirectory) -> int:
    """Count the episodes that regeneration would play."""
    return sum(len(greedy_tasks(run, path, evaluation)) for path, evaluation in run.evaluations())


def greedy_tasks(run: RunDirectory, path: str, evaluation: Evaluation) -> tuple[EpisodeTask, ...]:
    """List the episodes of an evaluation that have no draw in them."""
    greedy = {part.name: part.decoding for part in evaluation.plan.parts if part.decoding.method == "greedy"}
    is_own_wording = run.manifest is None or run.manifest.product_version == __version__
    return tuple(
        EpisodeTask(path, number, episode, evaluation.plan, greedy[episode.part], is_own_wording)
        for number, episode in enumerate(evaluation.episodes)
        if episode.part in greedy
    )


def regenerate(run: RunDirectory, wish: Wish, *, on_episode: Callable[[], None]) -> Regeneration:
    """Play the greedy episodes of a run again, those after training first.

    Args:
        run: A run that reached level E3.
        wish: What may be used besides the run.
        on_episode: Called after each episode.

    Raises:
        UsageError: The memory does not hold the model.
    """
    parts = {
        path: _regenerate_evaluation(run, path, evaluation, wish, on_episode)
        for path, evaluation in reversed(run.evaluations())
    }
    absent = _Part((), 0, 0, "there is no such evaluation")
    reached: Level = "E4"
    before, after = parts.get(layout.BEFORE, absent), parts.get(layout.AFTER, absent)
    if after.obstacle is not None:
        reached, reason = "E3", f"E4 was not reached after training: {after.obstacle}"
    elif before.obstacle is not None:
        reason = f"{_HIGHEST}; it speaks of the evaluation after training only: {before.obstacle}"
    else:
        reason = _HIGHEST
    return Regeneration(
        findings=(*after.findings, *before.findings),
        counts={
            "evaluations_regenerated": (before.obstacle is None) + (after.obstacle is None),
            "episodes_regenerated": before.episodes + after.episodes,
            "turns_regenerated": before.turns + after.turns,
        },
        reached=reached,
        reason=reason,
    )


def explains_near(near: int, *, tokens: int) -> bool:
    """Tell whether rounding explains so many near choices in so many tokens.

    >>> explains_near(3, tokens=120), explains_near(20, tokens=120)
    (True, False)
    """
    return near <= 1 + tokens // NEAR_TOKENS


def _regenerate_one(task: EpisodeTask, speaker: Speaker) -> Regenerated:
    try:
        return regenerate_episode(task, speaker)
    except Exception as error:
        if is_out_of_memory(error):
            raise out_of_memory() from error
        # The boundary of an episode: one hostile record must not hide the others.
        what = f"playing the episode again raised {type(error).__name__}: {error}"
        return Regenerated((task.wrong("REGENERATION_DIFFERS", what, ""),), 0, 0, 0)


def _regenerate_evaluation(
    run: RunDirectory, path: str, evaluation: Evaluation, wish: Wish, on_episode: Callable[[], None]
) -> _Part:
    tasks = greedy_tasks(run, path, evaluation)
    if not tasks:
        what = "the evaluation has no greedy episode"
        return _Part((finding("REGENERATION_IMPOSSIBLE", what, file=path, pointer="/episodes"),), 0, 0, what)
    findings: list[Finding] = []
    episodes = turns = tokens = near = 0
    try:
        with recorded_speaker(run, path, wish) as speaker:
            for task in tasks:
                played = _regenerate_one(task, speaker)
                findings += played.findings
                episodes += played.is_whole
                turns += played.turns
                tokens += played.tokens
                near += played.near
                on_episode()
    except Obstacle as stop:
        return _Part((stop.finding,), 0, 0, stop.finding.what)
    if not explains_near(near, tokens=tokens):
        what = f"{near} of {tokens} tokens are near choices; rounding makes about one in {NEAR_TOKENS}"
        findings.append(finding("REGENERATION_DIFFERS", what, file=path, pointer="/episodes"))
    codes = sorted({item.code for item in findings} - {"REGENERATION_NEAR"})
    obstacle = f"{', '.join(codes)} in {len(tasks) - episodes} of {len(tasks)} greedy episodes" if codes else None
    return _Part(tuple(findings), episodes, turns, obstacle)
