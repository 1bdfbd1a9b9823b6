"""Forgeries of the sample run by a forger who has the base model and its tokenizer: all that replay asks for agrees."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evidence_builder import read_json, reseal, write

from molforge_env.policies import find_policy
from molforge_env.seeding import stream
from molforge_env.suites import resolve_scenario
from molforge_eval import layout
from molforge_eval.canonical import digest, file_bytes, plain
from molforge_eval.dialogue import Dialogue
from molforge_eval.model_loading import Loaded, load_model
from molforge_eval.model_policy import _finished
from molforge_eval.plan import PlannedEpisode
from molforge_eval.played import PlayedEpisode, seal_episode
from molforge_eval.policies import Loading, PolicySpec
from molforge_eval.records import Evaluation, EvaluationPlan, PolicyIdentity
from molforge_eval.regenerated_episode import Speaker, speaker_of

BASE = "molforge_train/models/tiny/base"
INPUT_ADAPTER = "molforge_train/models/tiny/sft_adapter"
Forced = Mapping[tuple[int, int], int]
"""Turn and place in its completion to the token that is put there in place of the model's choice."""


def load_tiny(adapter: Path | str, dtype: Any = "auto") -> Loaded:
    """Load the built-in base model with an adapter."""
    return load_model(PolicySpec("hf", BASE, str(adapter)), Loading(dtype=dtype, device="cpu"))


def spell(tool: str, arguments: Mapping[str, Any]) -> str:
    """Write a call as the tiny model does."""
    body = json.dumps({"name": tool, "arguments": dict(arguments)})
    return f"<tool_call>\n{body}\n</tool_call><|im_end|>"


def play_script(name: str, planned: PlannedEpisode, plan: EvaluationPlan, speaker: Speaker) -> PlayedEpisode:
    """Play an episode by a script, and write it down as if the model had spoken."""
    dialogue = _dialogue(planned, plan, speaker)
    policy, rng = find_policy(name), stream(planned.seed, "forgery", name)
    while dialogue.ended_by is None:
        tool, arguments = policy.act(dialogue._session, rng)
        tokenizer: Any = speaker.loaded.tokenizer
        dialogue.take(tokenizer.encode(spell(tool, arguments), add_special_tokens=False))
    return _finished(planned, dialogue, 0.1)


def play_forced(planned: PlannedEpisode, plan: EvaluationPlan, speaker: Speaker, forced: Forced) -> PlayedEpisode:
    """Let the model play an episode, with some of its tokens chosen for it."""
    from molforge_eval.lock_step import weigh_next

    dialogue = _dialogue(planned, plan, speaker)
    while dialogue.ended_by is None:
        ids: list[int] = []
        while len(ids) < dialogue.room and not (ids and ids[-1] in speaker.stop_ids):
            weights = weigh_next(speaker.loaded.model, [*dialogue.context, *ids])
            ids.append(forced.get((len(dialogue.turns), len(ids)), max(range(len(weights)), key=weights.__getitem__)))
        dialogue.take(ids)
    return _finished(planned, dialogue, 0.1)


def planned_greedy(evaluation: Evaluation) -> Iterator[PlannedEpisode]:
    """List the greedy episodes of an evaluation."""
    (part,) = (part for part in evaluation.plan.parts if part.decoding.method == "greedy")
    for episode in evaluation.episodes:
        if episode.part == part.name:
            yield PlannedEpisode(
                episode.episode_id, episode.part, episode.suite, episode.scenario_id, episode.seed, part.decoding
            )


def read_evaluation(root: Path, path: str = layout.AFTER) -> Evaluation:
    """Read an evaluation of a run."""
    return Evaluation.model_validate(read_json(root, path))


def put_episodes(root: Path, played: Sequence[PlayedEpisode], path: str = layout.AFTER) -> None:
    """Put episodes into an evaluation in the place of those with the same id, and seal the run again."""
    value = read_json(root, path)
    policy = digest(PolicyIdentity.model_validate(value["policy"]))
    records = [
        plain(seal_episode(episode, reward_mode=value["plan"]["reward_mode"], policy_sha256=policy))
        for episode in played
    ]
    by_id = {record["episode_id"]: record for record in records}
    value["episodes"] = [by_id.get(episode["episode_id"], episode) for episode in value["episodes"]]
    write(root, path, file_bytes(value))
    reseal(root)


def change_policy(root: Path, *paths: str, **changes: Any) -> None:
    """Name another policy in evaluations, wherever its digest stands, and seal the run again."""
    for path in paths or layout.EVALUATIONS:
        value = read_json(root, path)
        value["policy"] |= changes
        for episode in value["episodes"]:
            episode["policy_sha256"] = digest(value["policy"])
        write(root, path, file_bytes(value))
    reseal(root)


def swap_sides(root: Path) -> None:
    """Exchange the episodes of before and after whole, each under the other's policy, and taking the other's time."""
    before, after = read_json(root, layout.BEFORE), read_json(root, layout.AFTER)
    for path, head, other in ((layout.BEFORE, before, after), (layout.AFTER, after, before)):
        policy = digest(head["policy"])
        episodes = [
            episode | {"policy_sha256": policy, "wall_time_seconds": own["wall_time_seconds"]}
            for own, episode in zip(head["episodes"], other["episodes"], strict=True)
        ]
        write(root, path, file_bytes(head | {"episodes": episodes}))
    reseal(root)


def speaker_for(root: Path, path: str = layout.AFTER, dtype: Any = "auto") -> Speaker:
    """Load the model that plays one side of the sample run."""
    adapter = root / layout.ADAPTER_FOLDER if path == layout.AFTER else INPUT_ADAPTER
    return speaker_of(load_tiny(adapter, dtype), read_evaluation(root, path).plan)


def _dialogue(planned: PlannedEpisode, plan: EvaluationPlan, speaker: Speaker) -> Dialogue:
    scenario = resolve_scenario(suite=planned.suite, scenario_id=planned.scenario_id, seed=planned.seed)
    return Dialogue(scenario, plan, planned.decoding, speaker.form)
