"""The numbers of an evaluation, computed again from its episodes (rule R4).

An episode is compared with itself first, then the plan with the episodes, then every mean with what it is a mean of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from molforge_env.grading import SCORE_NAMES
from molforge_eval.canonical import digest, plain
from molforge_eval.catalogue import finding, seen
from molforge_eval.checks.rounding import agrees
from molforge_eval.findings import Finding
from molforge_eval.plan import planned_episodes
from molforge_eval.played import UNFINISHED_SCORE, total_reward
from molforge_eval.records import EpisodeRecord, Evaluation
from molforge_eval.records.fields import COMPLETED_ENDINGS
from molforge_eval.run_directory import RunDirectory
from molforge_eval.summaries import summarise

_HEADLINES = ("final_score", "submission_score", "progress_score")


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compute the numbers of both evaluations again."""
    for path, evaluation in run.evaluations():
        policy = digest(evaluation.policy)
        for index, episode in enumerate(evaluation.episodes):
            yield from _check_episode(path, index, episode, policy)
        yield from _check_limit(path, evaluation)
        yield from _check_coverage(path, evaluation)
        yield from _check_summaries(path, evaluation)
        yield from _check_counted(path, evaluation)


def _check_episode(path: str, index: int, episode: EpisodeRecord, policy: str) -> Iterator[Finding]:
    def wrong(code: str, what: str, key: str) -> Finding:
        return finding(code, what, file=path, pointer=f"/episodes/{index}{key}", episode=episode.episode_id)

    if episode.policy_sha256 != policy:
        yield wrong("POLICY_DIFFERS", "the episode was played by another policy than the file names", "/policy_sha256")
    for key in ("scenario_id", "difficulty", "suite"):
        own, resolved = getattr(episode, key), getattr(episode.scenario, key)
        if own != resolved:
            yield wrong("SCENARIO_DIFFERS", f"{key} is {seen(own)}, the scenario says {seen(resolved)}", f"/{key}")
    if episode.scenario.seed not in (None, episode.seed):
        what = f"seed is {episode.seed}, the scenario says {episode.scenario.seed}"
        yield wrong("SCENARIO_DIFFERS", what, "/seed")
    total = None if episode.ended_by == "env_error" else total_reward(episode.steps)
    if not agrees(episode.total_reward, total):
        yield wrong(
            "TOTAL_DIFFERS",
            f"total_reward is {seen(episode.total_reward)}, the steps add up to {seen(total)}",
            "/total_reward",
        )
    yield from _check_ending(path, index, episode)
    yield from _check_turns(path, index, episode)
    for key, recorded, expected in _headlines(episode):
        if recorded != expected:
            yield wrong("SCORE_DIFFERS", f"{key} is {seen(recorded)}, the episode gives {seen(expected)}", f"/{key}")


def _headlines(episode: EpisodeRecord) -> Iterator[tuple[str, float | None, float | None]]:
    """Pair each headline score with what ending and grader scores make of it."""
    for key in _HEADLINES:
        expected = None if episode.scores is None else episode.scores.get(key)
        if key == "final_score" and episode.scores is None and episode.ended_by != "env_error":
            expected = UNFINISHED_SCORE
        yield key, getattr(episode, key), expected


def _check_ending(path: str, index: int, episode: EpisodeRecord) -> Iterator[Finding]:
    def wrong(what: str, key: str, step: int | None = None) -> Finding:
        place = f"/episodes/{index}{key}"
        return finding("ENDING_DIFFERS", what, file=path, pointer=place, episode=episode.episode_id, step=step)

    over = episode.ended_by in COMPLETED_ENDINGS
    done = [step for step in episode.steps if step.done]
    if over and not done:
        yield wrong(f"ended_by is {seen(episode.ended_by)}, no step is done", "/ended_by")
    if done and not over and episode.ended_by != "env_error":
        what = f"step {done[0].step} is done, ended_by is {seen(episode.ended_by)}"
        yield wrong(what, "/ended_by", done[0].step)
    if over != (episode.scores is not None):
        what = f"ended_by is {seen(episode.ended_by)}, and there are {'no' if over else ''} grader scores"
        yield wrong(what.replace("  ", " "), "/scores")
    if (episode.ended_by == "env_error") != (episode.error is not None):
        yield wrong(f"ended_by is {seen(episode.ended_by)}, error is {seen(episode.error)}", "/error")
    yield from _check_scores(path, index, episode)
    if episode.ended_by == "submit" and done and done[0].action_type != "submit":
        yield wrong(f'ended_by is "submit", the last step is {seen(done[0].action_type)}', "/ended_by", done[0].step)


def _check_scores(path: str, index: int, episode: EpisodeRecord) -> Iterator[Finding]:
    """A graded episode has every grader score and no other."""
    if episode.scores is None:
        return
    place: dict[str, Any] = {"file": path, "pointer": f"/episodes/{index}/scores", "episode": episode.episode_id}
    missing = [name for name in SCORE_NAMES if name not in episode.scores]
    if missing:
        what = f"{len(missing)} of {len(SCORE_NAMES)} grader scores are missing, the first is {seen(missing[0])}"
        yield finding("SCORES_INCOMPLETE", what, **place)
    strange = sorted(name for name in episode.scores if name not in SCORE_NAMES)
    if strange:
        yield finding("SCORES_INCOMPLETE", f"score {seen(strange[0])} is none of the grader's", **place)


def _check_turns(path: str, index: int, episode: EpisodeRecord) -> Iterator[Finding]:
    """Turns are numbered from 0, steps belong to them in order, and token counts add up."""

    def wrong(code: str, what: str, key: str) -> Finding:
        return finding(code, what, file=path, pointer=f"/episodes/{index}{key}", episode=episode.episode_id)

    for place, turn in enumerate(episode.turns):
        if turn.turn != place:
            yield wrong(
                "TURN_MISCOUNTED", f"turn {place} of the episode is numbered {turn.turn}", f"/turns/{place}/turn"
            )
    for place, (first, second) in enumerate(pairwise(episode.steps), 1):
        if second.turn < first.turn:
            what = f"a step of turn {second.turn} after one of turn {first.turn}"
            yield wrong("TURN_MISCOUNTED", what, f"/steps/{place}/turn")
    written = [turn.completion_tokens for turn in episode.turns]
    if episode.completion_tokens != sum(written):
        what = f"completion_tokens is {episode.completion_tokens}, the turns have {sum(written)}"
        yield wrong("TOKENS_DIFFER", what, "/completion_tokens")
    # A script reads no tokens.
    given = episode.turns[-1].prompt_tokens - sum(written[:-1]) if episode.turns else 0
    if episode.prompt_tokens != max(given, 0):
        what = f"prompt_tokens is {episode.prompt_tokens}, the turns make it {given}"
        yield wrong("TOKENS_DIFFER", what, "/prompt_tokens")
    for place, (before, after) in enumerate(pairwise(episode.turns), 1):
        least = before.prompt_tokens + before.completion_tokens
        if after.prompt_tokens < least:
            what = f"the context has {after.prompt_tokens} tokens, the turn before left {least}"
            yield wrong("TOKENS_DIFFER", what, f"/turns/{place}/prompt_tokens")


def _check_limit(path: str, evaluation: Evaluation) -> Iterator[Finding]:
    """Calls are carried out in as many turns as the plan allows."""
    limit = evaluation.plan.turn_limit
    for index, episode in enumerate(evaluation.episodes):
        place: dict[str, Any] = {"file": path, "episode": episode.episode_id}
        for number, step in enumerate(episode.steps):
            if step.turn >= limit:
                what = f"a call in turn {step.turn}, counted from 0, and turn_limit is {limit}"
                yield finding("TURN_LIMIT_PASSED", what, pointer=f"/episodes/{index}/steps/{number}/turn", **place)
                break


def _check_coverage(path: str, evaluation: Evaluation) -> Iterator[Finding]:
    """Compare the planned episodes with those that have a record."""
    planned = {
        entry.episode_id: (entry.part, entry.suite, entry.scenario_id, entry.seed, evaluation.plan.reward_mode)
        for entry in planned_episodes(evaluation.plan)
    }
    times = Counter(episode.episode_id for episode in evaluation.episodes)
    for index, episode in enumerate(evaluation.episodes):
        place: dict[str, Any] = {"file": path, "pointer": f"/episodes/{index}", "episode": episode.episode_id}
        if times[episode.episode_id] > 1:
            what = f"the episode stands {times[episode.episode_id]} times in the file"
            yield finding("EPISODE_REPEATED", what, **place)
            times[episode.episode_id] = 0
        cell = (episode.part, episode.suite, episode.scenario_id, episode.seed, episode.reward_mode)
        if planned.get(episode.episode_id) != cell:
            yield finding("EPISODE_UNPLANNED", "the plan has no such episode", **place)
    missing = [episode_id for episode_id in planned if episode_id not in times]
    if missing:
        what = f"{len(missing)} of {len(planned)} planned episodes have no record, the first is {missing[0]}"
        yield finding("EPISODE_MISSING", what, file=path, pointer="/episodes", episode=missing[0])


def with_own_means(evaluation: Evaluation) -> Evaluation:
    """Return an evaluation whose summaries and average are computed from its episodes."""
    computed = summarise(evaluation.plan, evaluation.episodes)
    greedy = next((part.mean_final_score for part in computed if part.part == "greedy"), None)
    return evaluation.model_copy(update={"summaries": computed, "average_final_score": greedy})


def _check_summaries(path: str, evaluation: Evaluation) -> Iterator[Finding]:
    own = with_own_means(evaluation)
    computed = own.summaries
    if len(computed) != len(evaluation.summaries):
        what = f"the file has {len(evaluation.summaries)} summaries, the plan has {len(computed)} parts"
        yield finding("SUMMARY_DIFFERS", what, file=path, pointer="/summaries")
    for index, (recorded, expected) in enumerate(zip(evaluation.summaries, computed, strict=False)):
        yield from compare_values(path, f"/summaries/{index}", plain(recorded), plain(expected))
    yield from compare_values(path, "/average_final_score", evaluation.average_final_score, own.average_final_score)


def compare_values(path: str, pointer: str, recorded: Any, expected: Any) -> Iterator[Finding]:
    """Compare a recorded value with the computed one, key by key; numbers up to how they were written."""
    if isinstance(recorded, dict) and isinstance(expected, dict):
        for key in dict.fromkeys([*recorded, *expected]):
            yield from compare_values(path, f"{pointer}/{key}", recorded.get(key), expected.get(key))
    elif isinstance(recorded, list) and isinstance(expected, list) and len(recorded) == len(expected):
        for index, (left, right) in enumerate(zip(recorded, expected, strict=True)):
            yield from compare_values(path, f"{pointer}/{index}", left, right)
    elif not _same(recorded, expected):
        what = f"recorded is {seen(recorded)}, computed again it is {seen(expected)}"
        yield finding("SUMMARY_DIFFERS", what, file=path, pointer=pointer)


def _same(recorded: Any, expected: Any) -> bool:
    if isinstance(recorded, float) or isinstance(expected, float):
        numbers = (int, float)
        if isinstance(recorded, numbers) and isinstance(expected, numbers):
            return agrees(float(recorded), float(expected))
    return bool(recorded == expected)


def _check_counted(path: str, evaluation: Evaluation) -> Iterator[Finding]:
    """Name a part in which not every planned episode was counted."""
    for index, part in enumerate(evaluation.summaries):
        place: dict[str, Any] = {"file": path, "pointer": f"/summaries/{index}"}
        if part.planned and not part.completed:
            yield finding("EVALUATION_FAILED", f"0 of {part.planned} episodes of part {part.part} counted", **place)
        elif part.errored or part.excluded:
            what = f"{part.completed} of {part.planned} episodes of part {part.part} counted"
            yield finding("EVALUATION_PARTIAL", what, **place)
