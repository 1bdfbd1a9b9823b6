"""What the host trainer logged of a recorded run, held to the episodes of that run."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev

import pytest
from evidence_builder import edit_line, read_lines, reseal, write_lines

from molforge_eval import layout
from molforge_eval.checks import trainer_means
from molforge_eval.findings import Finding
from molforge_eval.run_directory import load
from molforge_eval.validate import validate

LOG = layout.TRAINER_LOG


def found(run: Path) -> list[Finding]:
    return list(trainer_means.check(load(run)))


def test_a_recorded_run_agrees_in_every_key(sample_run: Path) -> None:
    row = read_lines(sample_run, LOG)[0]

    assert {"reward_std", "frac_reward_zero_std", "tools/call_frequency", "reward_part/candidate"} <= set(row)
    assert found(sample_run) == []


@pytest.mark.parametrize(
    "key",
    [
        "reward_std",
        "rewards/episode_reward/std",
        "tools/call_frequency",
        "reward_part/final_score",
        "reward_part/invalid_call",
        "reward_part/vetoed_call",
        "reward_part/after_end_call",
        "reward_part/unfinished",
    ],
)
def test_a_number_that_is_moved_by_a_thousandth_is_named(key: str, sample_run: Path) -> None:
    value = read_lines(sample_run, LOG)[0][key]
    edit_line(sample_run, 1, LOG, **{key: value + 0.001})
    item = found(sample_run)[0]

    assert (item.code, item.where.line, item.where.pointer) == ("TRAINER_MEAN_DIFFERS", 1, f"/{key.replace('/', '~1')}")


def test_parts_that_do_not_add_up_to_the_reward_are_named(sample_run: Path) -> None:
    value = read_lines(sample_run, LOG)[0]["reward_part/evidence"]
    edit_line(sample_run, 1, LOG, **{"reward_part/evidence": value + 0.001})
    (item,) = found(sample_run)

    assert item.what.startswith("the parts of the reward add up to ")


@pytest.mark.parametrize("share", [0.5, 1.0, None])
def test_more_even_groups_than_the_episodes_have_are_named(share: float | None, sample_run: Path) -> None:
    edit_line(sample_run, 1, LOG, frac_reward_zero_std=share)
    (item,) = found(sample_run)

    assert item.where.pointer == "/frac_reward_zero_std"


def test_a_share_of_even_groups_where_no_group_was_generated_is_named(sample_run: Path) -> None:
    edit_line(sample_run, 2, LOG, frac_reward_zero_std=0.0)
    (item,) = found(sample_run)

    assert item.what == "frac_reward_zero_std is 0.0, 0 groups were generated for the row"


def _pay_equally(run: Path, pay: float) -> None:
    lines = read_lines(run)
    for line in lines:
        if line["trainer_step"] == 0 and line["training_reward"] is not None:
            line["training_reward"] = pay
    write_lines(run, lines)
    reseal(run)


@pytest.mark.parametrize(("pay", "share", "is_named"), [(0.3, 1.0, 0), (0.3, 0.0, 0), (0.0, 1.0, 0), (0.0, 0.0, 1)])
def test_even_groups_may_look_uneven_in_single_precision_unless_they_were_paid_nothing(
    pay: float, share: float, *, is_named: int, sample_run: Path
) -> None:
    _pay_equally(sample_run, pay)
    edit_line(sample_run, 1, LOG, frac_reward_zero_std=share)
    named = [item for item in found(sample_run) if item.where.pointer == "/frac_reward_zero_std"]

    assert len(named) == is_named


def test_calls_are_not_counted_where_the_environment_broke(sample_run: Path) -> None:
    lines = read_lines(sample_run)
    end = next(line for line in lines if line["ended_by"] is not None)
    end.update(ended_by="env_error", status="env_error", episode_score=None, training_reward=None)
    write_lines(sample_run, lines)
    reseal(sample_run)
    edit_line(sample_run, 1, LOG, **{"tools/call_frequency": 1.0})

    assert "/tools~1call_frequency" not in {item.where.pointer for item in found(sample_run)}


def spread_within_groups(run: Path, step: int) -> float:
    groups: dict[tuple[str, int], list[float]] = defaultdict(list)
    for line in read_lines(run):
        if line["trainer_step"] == step and line["training_reward"] is not None:
            groups[line["scenario_id"], line["seed"]].append(line["training_reward"])
    return mean(stdev(paid) for paid in groups.values())


def age(run: Path) -> None:
    """Rewrite the rows of a built run as an early version of the host logs them."""
    rows = read_lines(run, LOG)
    for row in rows:
        if row["type"] == "train":
            row["rewards/episode_reward"] = row["reward"]
            row["reward_std"] = spread_within_groups(run, row["step"] - 1)
            row["completion_length"] = 41.5
            row["clip_ratio"] = 0.01
            row["epoch"] = round(row["step"] / 4, 2)
            del row["frac_reward_zero_std"]
    write_lines(run, rows, LOG)


def test_rows_of_an_early_version_of_the_host_are_not_refused_for_their_age(run_copy: Path) -> None:
    age(run_copy)
    reseal(run_copy)

    assert validate(run_copy).findings == ()


@pytest.mark.parametrize("key", ["rewards/episode_reward", "reward_std"])
def test_a_number_of_an_early_version_is_held_to_the_episodes_too(run_copy: Path, key: str) -> None:
    age(run_copy)
    edit_line(run_copy, 2, LOG, **{key: read_lines(run_copy, LOG)[1][key] + 0.01})

    assert [(item.where.line, item.where.pointer) for item in found(run_copy)] == [(2, f"/{key.replace('/', '~1')}")]


@pytest.mark.parametrize("key", ["reward_std", "frac_reward_zero_std", "grad_norm", "loss"])
def test_a_key_that_a_version_of_the_host_does_not_log_is_not_missed(run_copy: Path, key: str) -> None:
    rows = [{name: value for name, value in row.items() if name != key} for row in read_lines(run_copy, LOG)]
    write_lines(run_copy, rows, LOG)

    assert found(run_copy) == []
