"""The tool calls of a run of format version 0: what one line says by itself, and what all of them say of the training.

The lines carry no episode, and how the script fills them is not known in full: what is unusual is told once, counted,
and only what no run can have is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import polars as pl

from molforge_env.scenarios import SCENARIOS
from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.checks.old_episodes import SCORES, impossible_scores, untied_scores
from molforge_eval.findings import Finding
from molforge_eval.old_rollouts import NO_CALL
from molforge_eval.records.fields import Tool
from molforge_eval.run_directory import RunDirectory

_PATH = layout.ROLLOUTS
_TOOLS = frozenset(get_args(Tool))
_LONGEST = max(scenario.max_steps for scenario in SCENARIOS.values()) + 1
"""Steps that no episode exceeds: the training draw may add one to its task's own."""
_LINES_FOR_A_VERDICT = 30
_EPISODES_FOR_A_VERDICT = 20
_MOST_FALLBACK = 0.05
_MOST_BROKEN = 0.25
_ROOM = 1e-9
_SHARE_OF_A_RULE = 0.9
"""Of its lines a log goes by a rule when so many do."""


def check(run: RunDirectory) -> Iterator[Finding]:
    """Look at the lines of the rollout log."""
    lines = run.rollouts
    if run.old is None or not len(lines):
        return
    yield from _check_tasks(lines)
    yield from _check_rewards(lines)
    yield from _check_scores(lines.filter(pl.col("done").fill_null(value=False)))
    yield from _check_actions(lines)
    yield from _check_conduct(lines)


def _check_tasks(lines: pl.DataFrame) -> Iterator[Finding]:
    unknown = lines.filter(~pl.col("scenario_id").is_in(list(SCENARIOS)))
    if len(unknown):
        names = ", ".join(seen(name) for name in unknown["scenario_id"].unique().sort().to_list())
        what = f"{names}: no task of the rules has this name"
        yield finding("TASK_UNKNOWN", what, file=_PATH, line=unknown["line"][0], pointer="/scenario_id")
    difficulties = pl.col("scenario_id").replace_strict({k: v.difficulty for k, v in SCENARIOS.items()}, default=None)
    unlike = lines.filter(pl.col("difficulty").str.to_lowercase() != difficulties).select("line", "difficulty")
    if len(unlike):
        line, difficulty = unlike.row(0)
        what = f"difficulty is {seen(difficulty)}, the task is of another{_share(unlike, lines)}"
        yield finding("SCENARIO_DIFFERS", what, file=_PATH, line=line, pointer="/difficulty")
    beyond = lines.filter(pl.col("step_index") > _LONGEST).select("line", "step_index")
    if len(beyond):
        line, step = beyond.row(0)
        what = f"step_index is {step}, an episode has steps 1 to {_LONGEST} at most{_share(beyond, lines)}"
        yield finding("STEP_MISCOUNTED", what, file=_PATH, line=line, pointer="/step_index", step=step)


def _share(some: pl.DataFrame, lines: pl.DataFrame) -> str:
    return f"; {len(some)} of {len(lines)} lines"


def _check_rewards(lines: pl.DataFrame) -> Iterator[Finding]:
    """Where rewards are the final score at the end and that of the transition before, those that are not stand out."""
    wanted = pl.when(pl.col("done")).then(pl.col("final_score")).otherwise(pl.col("transition_reward"))
    told = lines.filter(pl.col("done").is_not_null()).with_columns(wanted=wanted).drop_nulls(["reward", "wanted"])
    wrong = told.filter((pl.col("reward") - pl.col("wanted")).abs() > _ROOM)
    if not len(wrong) or len(wrong) > (1.0 - _SHARE_OF_A_RULE) * len(told):
        return
    line, reward, value, done = wrong.select("line", "reward", "wanted", "done").row(0)
    name = "final_score" if done else "transition_reward"
    what = f"reward is {seen(reward)}, the {name} of the line is {seen(value)}{_share(wrong, told)}"
    yield finding("REWARD_DIFFERS", what, file=_PATH, line=line, pointer="/reward")


def _check_scores(ends: pl.DataFrame) -> Iterator[Finding]:
    """Look at the scores of the lines that end an episode."""
    untied: list[tuple[int, str, str]] = []
    for line, *own in ends.select("line", *SCORES).iter_rows():
        faults = list(impossible_scores(dict(zip(SCORES, own, strict=True))))
        for key, what in faults:
            yield finding("NUMBER_IMPOSSIBLE", what, file=_PATH, line=line, pointer=f"/{key}")
        if not faults:
            untied += [(line, key, what) for key, what in untied_scores(*own)]
    if untied:
        line, key, what = untied[0]
        what = f"{what}; so in {len(untied)} of {len(ends)} lines that end an episode"
        yield finding("SCORE_DIFFERS", what, file=_PATH, line=line, pointer=f"/{key}")


def _check_actions(lines: pl.DataFrame) -> Iterator[Finding]:
    unknown = lines.filter(~pl.col("action_type").is_in([*sorted(_TOOLS), NO_CALL, ""])).select("line", "action_type")
    if len(unknown):
        line, action = unknown.row(0)
        what = f"action_type is {seen(action)}, the tools are {', '.join(sorted(_TOOLS))}{_share(unknown, lines)}"
        yield finding("ACTION_UNKNOWN", what, file=_PATH, line=line, pointer="/action_type")


def _check_conduct(lines: pl.DataFrame) -> Iterator[Finding]:
    ended = lines.filter(pl.col("done"))
    rewards = lines["reward"].drop_nulls().unique()
    is_flat = len(lines) >= _LINES_FOR_A_VERDICT and len(rewards) <= 1
    if not len(ended) and (is_flat or len(lines) >= _EPISODES_FOR_A_VERDICT * _LONGEST):
        flat = f", and every reward is {seen(rewards[0])}" if len(rewards) == 1 else ""
        what = f"no line of {len(lines)} ends an episode{flat}"
        yield finding("EPISODES_UNFINISHED", what, file=_PATH, line=int(lines["line"][0]))
    fallback = lines.filter(pl.col("source").is_not_null() & (pl.col("source") != "model"))
    if len(fallback):
        what = f"{len(fallback)} of {len(lines)} lines came from {seen(fallback['source'][0])}, not from the model"
        code = "FALLBACK_RULES" if len(fallback) / len(lines) > _MOST_FALLBACK else "FALLBACK_PRESENT"
        yield finding(code, what, file=_PATH, line=int(fallback["line"][0]), pointer="/source")
    broken = lines.filter(pl.col("status") == "env_error")
    if len(broken):
        what = f"{len(broken)} of {len(lines)} calls broke in the environment"
        code = "ENVIRONMENT_BROKEN" if len(broken) / len(lines) > _MOST_BROKEN else "ENVIRONMENT_FAULTS"
        yield finding(code, what, file=_PATH, line=int(broken["line"][0]))
