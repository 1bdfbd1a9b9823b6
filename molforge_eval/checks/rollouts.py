"""Whether the rollout log tells whole episodes, and whether it was the model that played them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.checks.speech import MOST_FALLBACK, foreign_lines
from molforge_eval.findings import Finding
from molforge_eval.records.fields import COMPLETED_ENDINGS
from molforge_eval.run_directory import RunDirectory

_PATH = layout.ROLLOUTS
_FACTS = ("seed", "scenario_id", "difficulty", "reward_mode", "trainer_step", "generation")
"""What is the same on every line of an episode."""
_MOST_BROKEN = 0.25
"""Share of episodes that may break in the environment."""
_EPISODES_FOR_A_VERDICT = 20
"""Episodes from which none ended by the laboratory is a fault of the training."""


def check(run: RunDirectory) -> Iterator[Finding]:
    """Look at the episodes of the rollout log."""
    lines = run.rollouts
    if not len(lines):
        return
    episodes = lines.group_by("episode_id", maintain_order=True).agg(
        pl.col("line").first().alias("first_line"),
        pl.col("line").last().alias("last_line"),
        pl.col("step_index").last().alias("last_step"),
        pl.col("prompt_mark").first().is_not_null().alias("has_prompt"),
        pl.col("suite").first().is_not_null().alias("has_scenario"),
        pl.col("ended_by").last(),
        pl.col("ended_by").is_not_null().sum().alias("endings"),
        pl.col("episode_score").last(),
        pl.col("training_reward").last(),
        pl.col("trainer_step").n_unique().alias("steps_seen"),
        pl.col("trainer_step").first(),
        pl.col("generation").first(),
    )
    # A run that is killed leaves its last batch as far as it was written; a resume supersedes it.
    is_open = run.manifest is not None and run.manifest.status == "running"
    yield from _check_whole(episodes, is_open=is_open)
    yield from _check_early(lines)
    yield from _check_faults(lines)
    yield from _check_limit(run, lines)
    yield from _check_facts(lines)
    yield from _check_steps(lines)
    yield from _check_groups(run, episodes)
    yield from _check_conduct(run, lines, episodes)


def _check_whole(episodes: pl.DataFrame, *, is_open: bool) -> Iterator[Finding]:
    """An episode begins with prompt and scenario, and only its last line says how it ended."""
    for row in episodes.filter(~pl.col("has_prompt") | ~pl.col("has_scenario")).iter_rows(named=True):
        what = "the first line of the episode has no prompt or no scenario: lines before it are gone"
        yield finding("EPISODE_HEADLESS", what, file=_PATH, line=row["first_line"], episode=row["episode_id"])
    unended = episodes.filter(pl.col("ended_by").is_null() | (pl.col("endings") != 1))
    if is_open:
        unended = unended.filter((pl.col("last_line") != episodes["last_line"].max()) | (pl.col("endings") > 0))
    for row in unended.iter_rows(named=True):
        what = f"{row['endings']} lines of the episode say how it ended, the last line {seen(row['ended_by'])}"
        place: dict[str, Any] = {"line": row["last_line"], "episode": row["episode_id"], "step": row["last_step"]}
        yield finding("EPISODE_UNENDED", what, file=_PATH, **place)


def _check_early(lines: pl.DataFrame) -> Iterator[Finding]:
    """Score and pay of an episode stand on its last line only."""
    told = pl.col("episode_score").is_not_null() | pl.col("training_reward").is_not_null()
    early = lines.filter(pl.col("ended_by").is_null() & told)
    for line, episode, step in early.select("line", "episode_id", "step_index").iter_rows():
        what = "the line has the score or the pay of its episode and does not end it"
        yield finding("EPISODE_UNENDED", what, file=_PATH, line=line, episode=episode, step=step)


def _check_faults(lines: pl.DataFrame) -> Iterator[Finding]:
    """An episode that broke says so on its last line, has a call that broke, and no score and no pay."""
    broken = (pl.col("status") == "env_error").any().over("episode_id")
    ended = (pl.col("ended_by") == "env_error").fill_null(value=False)
    paid = pl.col("episode_score").is_not_null() | pl.col("training_reward").is_not_null()
    wrong = lines.filter(pl.col("ended_by").is_not_null() & ((broken != ended) | (ended & paid)))
    for line, episode, step, ending in wrong.select("line", "episode_id", "step_index", "ended_by").iter_rows():
        what = "the episode broke in the environment and has a score or pay"
        if ending != "env_error":
            what = f"a call of the episode broke in the environment, and ended_by is {seen(ending)}"
        elif not bool(lines.filter((pl.col("episode_id") == episode) & (pl.col("status") == "env_error")).height):
            what = 'ended_by is "env_error" and no call of the episode broke'
        place: dict[str, Any] = {"line": line, "episode": episode, "step": step}
        yield finding("FAULT_CONTRADICTED", what, file=_PATH, pointer="/ended_by", **place)


def _check_limit(run: RunDirectory, lines: pl.DataFrame) -> Iterator[Finding]:
    """Calls are carried out in as many turns as the settings allow."""
    if run.manifest is None:
        return
    limit = run.manifest.configuration.turn_limit
    beyond = lines.filter(pl.col("tool").is_not_null() & (pl.col("turn") >= limit))
    for line, episode, step, turn in beyond.select("line", "episode_id", "step_index", "turn").iter_rows():
        what = f"a call in turn {turn}, counted from 0, and turn_limit is {limit}"
        place: dict[str, Any] = {"line": line, "episode": episode, "step": step}
        yield finding("TURN_LIMIT_PASSED", what, file=_PATH, pointer="/turn", **place)


def _check_facts(lines: pl.DataFrame) -> Iterator[Finding]:
    """Every line of an episode is of one task, seed and place in the training."""
    firsts = [pl.col(key).first().over("episode_id").alias(f"first_{key}") for key in _FACTS]
    known = lines.select("line", "episode_id", "step_index", *_FACTS, *firsts)
    for key in _FACTS:
        strange = known.filter(pl.col(key) != pl.col(f"first_{key}"))
        for line, episode, step, value in strange.select("line", "episode_id", "step_index", key).iter_rows():
            what = f"{key} is {seen(value)}, the first line of the episode has another"
            yield finding("EPISODE_MIXED", what, file=_PATH, line=line, pointer=f"/{key}", episode=episode, step=step)


def _check_steps(lines: pl.DataFrame) -> Iterator[Finding]:
    """Within an episode the step counter rises by one with each step and stands still otherwise."""
    walked = lines.select(
        "line",
        "episode_id",
        "step_index",
        "turn",
        stepped=pl.col("transition_reward").is_not_null(),
        spoken=pl.col("has_completion") | (pl.col("source") != "model"),
    )
    before = walked.with_columns(
        expected=(pl.col("step_index").shift(1).over("episode_id").fill_null(0) + pl.col("stepped").cast(pl.Int64)),
        turn_before=pl.col("turn").shift(1).over("episode_id").fill_null(-1),
    )
    # A turn may hold several calls; the first of them carries its words, so a new number and new words come together.
    is_new = (pl.col("turn") == pl.col("turn_before") + 1) & pl.col("spoken")
    is_same = (pl.col("turn") == pl.col("turn_before")) & ~pl.col("spoken")
    wrong = before.filter((pl.col("step_index") != pl.col("expected")) | ~(is_new | is_same))
    for row in wrong.iter_rows(named=True):
        what = _miscount(row)
        place: dict[str, Any] = {"line": row["line"], "episode": row["episode_id"], "step": row["step_index"]}
        yield finding("STEP_MISCOUNTED", what, file=_PATH, **place)


def _miscount(row: Mapping[str, Any]) -> str:
    if row["step_index"] != row["expected"]:
        return f"step_index is {row['step_index']}, the lines before it make it {row['expected']}"
    if row["turn"] == row["turn_before"]:
        return f"turn {row['turn']} has a second completion"
    if row["turn"] == row["turn_before"] + 1:
        return f"turn {row['turn']} has no completion"
    return f"turn is {row['turn']} after turn {row['turn_before']}"


def _check_groups(run: RunDirectory, episodes: pl.DataFrame) -> Iterator[Finding]:
    """Every prompt has its whole group of completions, and every generation step as many episodes as a batch."""
    if run.manifest is None:
        return
    last = episodes["trainer_step"].max()
    if run.manifest.status == "running":
        episodes = episodes.filter(pl.col("trainer_step") != last)
    if not len(episodes):
        return
    size = run.manifest.configuration.num_generations
    counts = episodes.group_by("trainer_step", "generation").len().sort("trainer_step", "generation")
    for (step,), group in counts.group_by("trainer_step", maintain_order=True):
        found = dict(group.select("generation", "len").iter_rows())
        most = max(found.values())
        short = [place for place in range(size) if found.get(place, 0) != most]
        beyond = [place for place in found if place >= size]
        if short or beyond:
            what = (
                f"step {step} has no whole group of {size} completions a prompt: place {(short or beyond)[0]} differs"
            )
            yield finding("EPISODES_MISSING", what, file=_PATH)
    batches = episodes.group_by("trainer_step").len().sort("trainer_step")
    usual = int(batches["len"].max() or 0)  # type: ignore[arg-type] # a count
    for step, count in batches.filter(pl.col("len") != usual).iter_rows():
        what = f"step {step} has {count} episodes, other steps have {usual}"
        yield finding("EPISODES_MISSING", what, file=_PATH)
    beyond_end = episodes.filter(pl.col("trainer_step") > run.manifest.steps_completed)
    if len(beyond_end):
        row = beyond_end.row(0, named=True)
        what = f"an episode of trainer step {row['trainer_step']}, the run completed {run.manifest.steps_completed}"
        yield finding("STEPS_DIFFER", what, file=_PATH, line=row["first_line"], episode=row["episode_id"])


def _check_conduct(run: RunDirectory, lines: pl.DataFrame, episodes: pl.DataFrame) -> Iterator[Finding]:
    named = lines.filter(pl.col("source") == "fallback")
    foreign = foreign_lines(run)
    fallback = pl.concat([named.select("line", "episode_id"), foreign.select("line", "episode_id")]).sort("line")
    if len(fallback):
        share = len(fallback) / len(lines)
        beside = f"; {len(foreign)} of them do not stand in the model's words" if len(foreign) else ""
        what = f"{len(fallback)} of {len(lines)} lines came from a fallback, not from the model{beside}"
        code = "FALLBACK_RULES" if share > MOST_FALLBACK else "FALLBACK_PRESENT"
        yield finding(code, what, file=_PATH, line=fallback["line"][0], episode=fallback["episode_id"][0])
    broken = episodes.filter(pl.col("ended_by") == "env_error")
    if len(broken):
        share = len(broken) / len(episodes)
        what = f"{len(broken)} of {len(episodes)} episodes broke in the environment"
        code = "ENVIRONMENT_BROKEN" if share > _MOST_BROKEN else "ENVIRONMENT_FAULTS"
        yield finding(code, what, file=_PATH, line=broken["first_line"][0], episode=broken["episode_id"][0])
    ended = episodes.filter(pl.col("ended_by").is_in(sorted(COMPLETED_ENDINGS)))
    if len(episodes) >= _EPISODES_FOR_A_VERDICT:
        yield from _check_outcomes(episodes, len(ended))


def _check_outcomes(episodes: pl.DataFrame, ended: int) -> Iterator[Finding]:
    """Some episodes are ended by the laboratory, and not all of them are paid alike."""
    paid = episodes["training_reward"].drop_nulls()
    is_constant = len(paid) == len(episodes) and paid.n_unique() == 1
    first = int(episodes["first_line"].to_list()[0])
    if not ended:
        reward = f"the reward is {seen(paid[0])} in all" if is_constant else "and all score 0.0"
        what = f"none of {len(episodes)} episodes was ended by the laboratory, {reward}"
        yield finding("EPISODES_UNFINISHED", what, file=_PATH, line=first)
    elif is_constant:
        what = f"all {len(episodes)} episodes were paid {seen(paid[0])}"
        yield finding("REWARD_CONSTANT", what, file=_PATH, line=first, pointer="/training_reward")
