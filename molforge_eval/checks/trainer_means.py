"""The means in the trainer's log, computed again from the episodes that were generated for each row (rule R4).

The host averages within a batch of episodes and then over the batches of a row; a batch without a value is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.findings import Finding
from molforge_eval.records.fields import COMPLETED_ENDINGS
from molforge_eval.records.manifest import Configuration
from molforge_eval.run_directory import RunDirectory
from molforge_eval.training_reward import AFTER_END_CODE, REFUSED_CODE, REWARD_PARTS, STEPS

_ROOM = 2e-5
"""The host trainer averages in single precision."""

_ENDED = pl.col("ended_by").is_in(sorted(COMPLETED_ENDINGS))
_COUNTED = pl.col("episode_score").is_not_null()
_PAID = pl.col("training_reward")
_MEANS: Mapping[str, pl.Expr] = {
    "reward": _PAID.mean(),
    "reward_std": _PAID.std(),
    "rewards/episode_reward/mean": _PAID.mean(),
    # Early versions of the host log the mean of a reward function under its bare name, and no spread.
    "rewards/episode_reward": _PAID.mean(),
    "rewards/episode_reward/std": _PAID.std(),
    "strict_score": pl.col("episode_score").mean(),
    "submit_rate": (pl.col("ended_by") == "submit").filter(_COUNTED).mean(),
    "unfinished_rate": (~_ENDED).filter(_COUNTED).mean(),
    # A call that broke the environment may stand in the log or not; then there is no number to hold to.
    "tools/call_frequency": pl.when((pl.col("ended_by") == "env_error").any()).then(None).otherwise(pl.mean("calls")),
    "tools/failure_frequency": pl.when((pl.col("ended_by") == "env_error").any())
    .then(None)
    .when(pl.col("calls").sum() == 0)
    .then(0.0)
    .otherwise(pl.col("refused").sum() / pl.col("calls").sum()),
}
_PARTS: Mapping[str, pl.Expr] = {
    "final_score": pl.col("episode_score") * _ENDED,
    "invalid_call": -pl.col("invalid_call"),
    "vetoed_call": -pl.col("vetoed_call"),
    "after_end_call": -pl.col("after_end_call"),
    "unfinished": -(~_ENDED).cast(pl.Float64),
}
"""What a part of the reward weighs in an episode; the other graders' scores stand in no line."""

_UNSURE = frozenset({"tools/call_frequency", "tools/failure_frequency"})
"""Keys that may have a number where the episodes give none."""

_AFTER_END = pl.col("error_code") == AFTER_END_CODE
_INVALID = ~_AFTER_END & (pl.col("status") == "invalid")
_VETOED = ~_AFTER_END & ~_INVALID & (pl.col("governance_status") == "policy_veto").fill_null(value=False)


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compare each row of the trainer log with its episodes, and the rows with the steps that they must cover."""
    if run.manifest is None or layout.ROLLOUTS not in run.files:
        return
    rows = run.trainer_log.filter(pl.col("type").is_in(["train", "resume"]))
    means = {**_MEANS, **_part_means(run.manifest.configuration)}
    keys = [key for key in (*means, "frac_reward_zero_std", *_part_keys()) if rows.schema.get(key) == pl.Float64]
    means = {key: mean for key, mean in means.items() if key in keys}
    episodes = _episodes(run.rollouts)
    batches = episodes.group_by("trainer_step").agg(pl.len(), **means).sort("trainer_step")
    flat = _flat_groups(episodes)
    widths = _group_spreads(episodes)
    every = max(1, run.manifest.configuration.logging_steps)
    before = 0
    for row in rows.select("line", "type", "step", *dict.fromkeys(keys)).iter_rows(named=True):
        step = row["step"]
        if row["type"] == "resume" or step <= before:
            # Steps that were done twice have twice the episodes; which row they belong to is not recorded.
            return
        if step - before > every:
            what = f"no row for steps {before + 1} to {step - 1}, and a row is due every {every} steps"
            yield finding("STEPS_MISSING", what, file=layout.TRAINER_LOG, line=row["line"], pointer="/step")
        yield from _check_row(row, list(means), _between(batches, before, step), _between(widths, before, step))
        yield from _check_flat(row, _between(flat, before, step))
        yield from _check_parts(row)
        before = step


def _episodes(rollouts: pl.DataFrame) -> pl.DataFrame:
    """Take the last line of each episode, with the calls that it made and those that cost something."""
    calls = rollouts.group_by("episode_id").agg(
        calls=pl.col("tool").is_not_null().sum(),
        refused=pl.col("error_code").is_in([REFUSED_CODE, AFTER_END_CODE]).sum(),
        invalid_call=_INVALID.sum().cast(pl.Float64),
        vetoed_call=_VETOED.sum().cast(pl.Float64),
        after_end_call=_AFTER_END.sum().cast(pl.Float64),
    )
    ends = rollouts.filter(pl.col("ended_by").is_not_null())
    return ends.join(calls, on="episode_id", how="left", maintain_order="left")


def _part_means(settings: Configuration) -> dict[str, pl.Expr]:
    return {
        f"reward_part/{part}": (value * _weight_of(part, settings)).filter(_COUNTED).mean()
        for part, value in _PARTS.items()
    }


def _weight_of(part: str, settings: Configuration) -> pl.Expr:
    """A phase may weigh a part anew from its first step on."""
    weight = pl.lit(settings.reward_weights.get(part, 0.0))
    for phase in settings.reward_phases:
        is_later = pl.col("trainer_step") >= phase.from_step
        weight = pl.when(is_later).then(pl.lit(phase.reward_weights.get(part, 0.0))).otherwise(weight)
    return weight


def _part_keys() -> tuple[str, ...]:
    return tuple(f"reward_part/{part}" for part in REWARD_PARTS)


def _group_spreads(episodes: pl.DataFrame) -> pl.DataFrame:
    """Average the spread of rewards within each group, for each batch, as early versions of the host do."""
    prompt = ("trainer_step", "scenario_id", "seed")
    again = pl.int_range(pl.len()).over(*prompt, "generation")
    groups = episodes.group_by(*prompt, again.alias("again")).agg(spread=_PAID.std())
    return groups.group_by("trainer_step").agg(pl.mean("spread")).sort("trainer_step")


def _flat_groups(episodes: pl.DataFrame) -> pl.DataFrame:
    """Bound the share of groups whose rewards have no spread, as the host sees it, for each batch.

    In single precision equal rewards can have a mean that is none of them: the host then sees a spread of a
    ten-millionth and calls the group uneven. Only rewards of zero are sure to be called even.
    """
    prompt = ("trainer_step", "scenario_id", "seed")
    # Two groups of one prompt in a batch are told apart by the second coming of a generation's number.
    again = pl.int_range(pl.len()).over(*prompt, "generation")
    paid = _PAID.cast(pl.Float32)
    is_even = (paid.count() > 1) & (paid.min() == paid.max())
    groups = episodes.group_by(*prompt, again.alias("again")).agg(
        most=is_even.fill_null(value=False), least=(is_even & (paid.max() == 0.0)).fill_null(value=False)
    )
    return groups.group_by("trainer_step").agg(pl.mean("most"), pl.mean("least"), groups=pl.len()).sort("trainer_step")


def _between(batches: pl.DataFrame, first: int, end: int) -> pl.DataFrame:
    """Take the batches of the steps from one to before another; they are sorted, so that none is looked at in vain."""
    start, stop = (int(batches["trainer_step"].search_sorted(step)) for step in (first, end))
    return batches.slice(start, stop - start)


def _check_row(
    row: Mapping[str, Any], keys: list[str], batches: pl.DataFrame, widths: pl.DataFrame
) -> Iterator[Finding]:
    given = batches.select(pl.mean(*keys)).row(0, named=True) if keys else {}
    for key in keys:
        recorded, computed = row[key], given[key]
        if recorded is None or computed is None:
            is_same = recorded is computed or (computed is None and key in _UNSURE and len(batches) > 0)
        else:
            is_same = _is_near(recorded, computed)
            if not is_same and key == "reward_std":
                within = widths["spread"].drop_nulls().to_list()
                is_same = bool(within) and _is_near(recorded, sum(within) / len(within))
        if not is_same:
            what = f"{key} is {seen(recorded)}, the {batches['len'].sum()} episodes of the row give {seen(computed)}"
            yield _wrong(what, row, key)


def _check_flat(row: Mapping[str, Any], batches: pl.DataFrame) -> Iterator[Finding]:
    key = "frac_reward_zero_std"
    if key not in row:
        return
    recorded = row[key]
    if recorded is None or not len(batches):
        if (recorded is None) != (not len(batches)):
            what = f"{key} is {seen(recorded)}, {batches['groups'].sum()} groups were generated for the row"
            yield _wrong(what, row, key)
        return
    least, most = (float(batches[name].to_numpy().mean()) for name in ("least", "most"))
    if not least - _ROOM <= recorded <= most + _ROOM:
        what = f"{key} is {seen(recorded)}, of the {batches['groups'].sum()} groups of the row {most:.4g} are even"
        yield _wrong(what, row, key)


def _check_parts(row: Mapping[str, Any]) -> Iterator[Finding]:
    """The parts of a row's reward add up to the reward; those of the other graders can be held to nothing else."""
    # The rewards of steps are logged only where they are paid.
    keys = [key for key in _part_keys() if key in row or key != f"reward_part/{STEPS}"]
    parts = [row.get(key) for key in keys]
    paid = row.get("reward")
    if paid is None or any(part is None for part in parts):
        return
    total = sum(part for part in parts if part is not None)
    if not _is_near(paid, total):
        yield _wrong(f"the parts of the reward add up to {total:.6g}, reward is {seen(paid)}", row, "reward")


def _is_near(recorded: float, computed: float) -> bool:
    return abs(recorded - computed) <= _ROOM * max(1.0, abs(computed))


def _wrong(what: str, row: Mapping[str, Any], key: str) -> Finding:
    pointer = "/" + key.replace("~", "~0").replace("/", "~1")
    return finding("TRAINER_MEAN_DIFFERS", what, file=layout.TRAINER_LOG, line=row["line"], pointer=pointer)
