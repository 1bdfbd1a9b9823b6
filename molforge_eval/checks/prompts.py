"""What the model was given: the planned prompts in their order, and the same words wherever the same was asked.

Which prompts a run trains on follows from its settings, so an invented or moved episode stands where another was due.
The words around the laboratory's own cannot be computed here, but they must not change from one episode to the next.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.findings import Finding
from molforge_eval.records import EpisodeRecord, RunManifest
from molforge_eval.rollout_table import mark_of
from molforge_eval.run_directory import RunDirectory
from molforge_eval.training_prompts import PlannedPrompt, planned_prompts, prompts_of_batch

_PATH = layout.ROLLOUTS
_NAME = re.compile(r"step([0-9]{5,18})-prompt([0-9]{2,9})-([0-9]{2,9})(?:-r[0-9]{1,9})?")
"""The ending counts the resumes before the episode."""
_TAG = re.compile(r"<[^<>]*>|\[/?[A-Z_]+\]")
"""A mark of a chat template; whether one closes a completion depends on how the completion ended."""
_MOST_PROMPTS = 1_000_000
"""Prompts of a run whose order is computed."""

Scenario = tuple[str, str, int]
"""Suite, task and seed; for an official scenario the seed is -1, because it changes nothing of it."""


class _Episode(NamedTuple):
    """The first line of a training episode."""

    line: int
    episode_id: str
    trainer_step: int
    generation: int
    seed: int
    scenario_id: str
    suite: str
    prompt: int
    """Mark of the text: the table of the lines holds no texts."""

    @property
    def scenario(self) -> Scenario:
        """Name what the episode started from."""
        return self.suite, self.scenario_id, -1 if self.suite == "official" else self.seed


def check(run: RunDirectory) -> Iterator[Finding]:
    """Hold the training episodes to the planned prompts, and the words of prompts to each other."""
    episodes = _first_lines(run)
    if run.manifest is not None and episodes:
        yield from _check_places(run, run.manifest, episodes)
    yield from _check_openings(run, episodes)
    yield from _check_answers(run)


def _first_lines(run: RunDirectory) -> list[_Episode]:
    columns = ("line", "episode_id", "trainer_step", "generation", "seed", "scenario_id", "suite", "prompt_mark")
    lines = run.rollouts.select(columns)
    heads = lines.filter(pl.col("suite").is_not_null() & pl.col("prompt_mark").is_not_null())
    return [_Episode(*row) for row in heads.iter_rows()]


def _check_places(run: RunDirectory, manifest: RunManifest, episodes: list[_Episode]) -> Iterator[Finding]:
    """An episode's name says its step, prompt and generation; the prompt at that place is planned."""
    settings = manifest.configuration
    if settings.dataset_size > _MOST_PROMPTS:
        what = f"dataset_size is {settings.dataset_size}; the order of more than {_MOST_PROMPTS} is not computed"
        yield finding("PROMPT_UNPLANNED", what, file=layout.MANIFEST, pointer="/configuration/dataset_size")
        return
    prompts = planned_prompts(settings)
    episodes_a_batch = settings.batch_size * settings.gradient_accumulation * manifest.processes
    size = episodes_a_batch // max(1, settings.num_generations)
    # A resumed run begins its rows anew: then the order is not known. Batches of another size or distance than the
    # settings make are named by another check.
    batches = Counter(episode.trainer_step for episode in episodes)
    usual = Counter(batches.values()).most_common(1)[0][0]
    is_ordered = (
        usual == episodes_a_batch
        and all(step % max(1, settings.num_iterations) == 0 for step in batches)
        and "resume" not in run.trainer_log["type"].to_list()
    )
    known = frozenset(prompts)
    for episode in episodes:
        place: dict[str, Any] = {"file": _PATH, "line": episode.line, "episode": episode.episode_id}
        named = _NAME.fullmatch(episode.episode_id)
        step, number, generation = (int(part) for part in named.groups()) if named else (-1, -1, -1)
        if (step, generation) != (episode.trainer_step, episode.generation):
            what = f"the id does not name step {episode.trainer_step} and generation {episode.generation}"
            yield finding("EPISODE_MISNAMED", what, pointer="/episode_id", **place)
            continue
        given = PlannedPrompt(episode.suite, episode.scenario_id, episode.seed)  # type: ignore[arg-type] # compared only
        if is_ordered:
            batch = prompts_of_batch(prompts, step // max(1, settings.num_iterations), size)
            is_planned = number < len(batch) and batch[number] == given
        else:
            is_planned = given in known
        if not is_planned:
            what = f"{given.suite} {given.scenario_id} with seed {given.seed} is not the prompt of this place"
            yield finding("PROMPT_UNPLANNED", what, pointer="/seed", **place)


def _check_openings(run: RunDirectory, episodes: list[_Episode]) -> Iterator[Finding]:
    """Episodes that start from the same scenario were opened with the same words."""
    openings: dict[Scenario, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
    for episode in episodes:
        place: dict[str, Any] = {"file": _PATH, "line": episode.line, "episode": episode.episode_id}
        place["pointer"] = "/prompt"
        openings[episode.scenario].append((episode.prompt, place))
    for path, index, record in (entry for entry in _records(run) if entry[2].turns):
        text = mark_of(record.turns[0].prompt)
        seed = -1 if record.suite == "official" else record.seed
        place = {"file": path, "pointer": f"/episodes/{index}/turns/0/prompt", "episode": record.episode_id}
        openings[record.suite, record.scenario_id, seed].append((text, place))
    for told in openings.values():
        usual, times = Counter(text for text, _ in told).most_common(1)[0]
        for text, place in told:
            if text != usual:
                what = f"the prompt is not the one that {times} of {len(told)} episodes of this scenario were given"
                yield finding("PROMPT_UNLIKE", what, **place)


def _check_answers(run: RunDirectory) -> Iterator[Finding]:
    """Around the laboratory's answers stand the same words in every turn."""
    frames: dict[int, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for path, index, record in _records(run):
        if any(turn.turn != place for place, turn in enumerate(record.turns)):
            continue
        answers: Mapping[int, list[str]] = _answers(record)
        for turn in record.turns[1:]:
            own = answers.get(turn.turn - 1, [])
            place: dict[str, Any] = {"file": path, "pointer": f"/episodes/{index}/turns/{turn.turn}/prompt"}
            place["episode"] = record.episode_id
            frames[len(own)].append((_frame(turn.prompt, own), place))
    for told in frames.values():
        usual = Counter(frame for frame, _ in told).most_common(1)[0][0]
        for frame, place in told:
            if frame != usual:
                what = f"around the answers of the laboratory stands {seen(frame)}, elsewhere {seen(usual)}"
                yield finding("PROMPT_UNLIKE", what, **place)


def _records(run: RunDirectory) -> Iterator[tuple[str, int, EpisodeRecord]]:
    for path, evaluation in run.evaluations():
        # A script is given no chat.
        if evaluation.policy.kind == "hf":
            yield from ((path, index, record) for index, record in enumerate(evaluation.episodes))


def _answers(record: EpisodeRecord) -> Mapping[int, list[str]]:
    answers: dict[int, list[str]] = defaultdict(list)
    for step in record.steps:
        answers[step.turn].append(step.response)
    return answers


def _frame(prompt: str, answers: list[str]) -> str:
    """Take the answers, the blanks and the marks of the chat template out of a prompt."""
    text = "".join(prompt.split())
    for answer in answers:
        text = text.replace("".join(answer.split()), "", 1)
    return _TAG.sub("", text)
