"""The tool calls of a run of format version 0: what one line says by itself, and what all of them say of the training.

The lines carry no episode; what is tied within a line by the rules is held to them, and no line is held to another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    for task, scenario in SCENARIOS.items():
        wrong = lines.filter((pl.col("scenario_id") == task) & (pl.col("difficulty") != scenario.difficulty))
        for line, difficulty in wrong.select("line", "difficulty").iter_rows():
            what = f"difficulty is {seen(difficulty)}, {task} is {scenario.difficulty}"
            yield finding("SCENARIO_DIFFERS", what, file=_PATH, line=line, pointer="/difficulty")
    beyond = lines.filter((pl.col("step_index") > _LONGEST) | (pl.col("step_index") < 1))
    for line, step in beyond.select("line", "step_index").iter_rows():
        what = f"step_index is {step}, an episode has steps 1 to {_LONGEST} at most"
        yield finding("STEP_MISCOUNTED", what, file=_PATH, line=line, pointer="/step_index", step=step)


def _check_rewards(lines: pl.DataFrame) -> Iterator[Finding]:
    """The reward of a line is the final score when the episode is done, else that of the transition."""
    wanted = pl.when(pl.col("done")).then(pl.col("final_score")).otherwise(pl.col("transition_reward"))
    told = lines.filter(pl.col("done").is_not_null()).with_columns(wanted=wanted)
    wrong = told.filter((pl.col("reward") - pl.col("wanted")).abs() > _ROOM)
    for line, reward, value, done in wrong.select("line", "reward", "wanted", "done").iter_rows():
        name = "final_score" if done else "transition_reward"
        what = f"reward is {seen(reward)}, the {name} of the line is {seen(value)}"
        yield finding("REWARD_DIFFERS", what, file=_PATH, line=line, pointer="/reward")
    early = lines.filter(~pl.col("done") & pl.any_horizontal(pl.col(*SCORES).is_not_null()))
    for line, *scores in early.select("line", *SCORES).iter_rows():
        what = f"the episode goes on after this line, which has the scores {seen(scores)}"
        yield finding("SCORE_DIFFERS", what, file=_PATH, line=line, pointer="/final_score")


def _check_scores(ends: pl.DataFrame) -> Iterator[Finding]:
    """Look at the scores of the lines that end an episode."""
    for row in ends.select("line", "action_type", *SCORES).iter_rows(named=True):
        faults = list(impossible_scores({key: row[key] for key in SCORES}))
        for key, what in faults:
            yield finding("NUMBER_IMPOSSIBLE", what, file=_PATH, line=row["line"], pointer=f"/{key}")
        if faults:
            continue
        tied = list(untied_scores(*(row[key] for key in SCORES)))
        if row["submission_score"] and row["action_type"] != "submit":
            what = f"submission_score is {seen(row['submission_score'])}, the action is {seen(row['action_type'])}"
            tied.append(("submission_score", what))
        for key, what in tied:
            yield finding("SCORE_DIFFERS", what, file=_PATH, line=row["line"], pointer=f"/{key}")


def _check_actions(lines: pl.DataFrame) -> Iterator[Finding]:
    """A call names what its tool needs and is made by the role that the tool belongs to."""
    is_assay, is_edit = pl.col("action_type") == "run_assay", pl.col("action_type") == "edit"
    role = pl.when(is_assay).then(pl.lit("assay_planner")).otherwise(pl.lit("lead_chemist"))
    faults: Mapping[str, pl.Expr] = {
        "action_type": ~pl.col("action_type").is_in([*sorted(_TOOLS), NO_CALL]),
        "acting_role": pl.col("acting_role").is_not_null() & (pl.col("acting_role") != role),
        "tool_name": ~is_assay & pl.col("tool_name").is_not_null(),
        "slot": ~is_edit & pl.col("slot").is_not_null(),
        "fragment": ~is_edit & pl.col("fragment").is_not_null(),
    }
    for key, fault in faults.items():
        for line, value, action in (
            lines.filter(fault).select("line", key, pl.col("action_type").alias("a")).iter_rows()
        ):
            what = f"{key} is {seen(value)}, which no call of {seen(action)} has"
            if key == "action_type":
                what = f"action_type is {seen(value)}, the tools are {', '.join(sorted(_TOOLS))}"
            yield finding("CALL_IMPOSSIBLE", what, file=_PATH, line=line, pointer=f"/{key}")


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
