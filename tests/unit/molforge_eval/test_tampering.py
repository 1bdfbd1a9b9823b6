"""What was changed in a record is found at its place, sealed again or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from evidence_builder import drop_line, edit_json, edit_line, read_json, read_lines, reseal

from molforge_eval import layout
from molforge_eval.findings import Finding
from molforge_eval.replay import verify

SEALED = pytest.mark.parametrize("sealed", [False, True], ids=["as it is", "sealed again"])


def find(run: Path, code: str, *, sealed: bool) -> Finding:
    """Verify a run and return the one finding of a code."""
    if sealed:
        reseal(run)
    (found,) = (finding for finding in verify(run, workers=1).findings if finding.code == code)
    return found


def line_of(run: Path, path: str, text: str, *, after: str) -> int:
    """Find the first line that holds a text after the line that holds another."""
    lines = (run / path).read_text("utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if after in line)
    return next(number for number in range(start, len(lines)) if text in lines[number]) + 1


@SEALED
def test_a_reward_in_an_evaluation_is_found_with_line_episode_and_step(run_copy: Path, sealed: bool) -> None:
    def raise_reward(value: Any) -> None:
        value["episodes"][2]["steps"][1]["reward"] = 7.7777
        value["episodes"][2]["total_reward"] += 7.7777

    edit_json(run_copy, layout.AFTER, raise_reward)
    found = find(run_copy, "REPLAY_STEP_DIFFERS", sealed=sealed)

    assert found.where.file == layout.AFTER
    assert found.where.line == line_of(run_copy, layout.AFTER, "7.7777", after='"greedy:level_2_hard:0"')
    assert found.where.pointer == "/episodes/2/steps/1/reward"
    assert (found.where.episode, found.where.step) == ("greedy:level_2_hard:0", 2)
    assert "7.7777" in found.what


@SEALED
def test_an_action_in_an_evaluation_is_found_with_line_episode_and_step(run_copy: Path, sealed: bool) -> None:
    def act_otherwise(value: Any) -> None:
        value["episodes"][0]["steps"][2]["arguments"] = {"slot": "warhead", "fragment": "nitrile"}

    edit_json(run_copy, layout.AFTER, act_otherwise)
    found = find(run_copy, "REPLAY_STEP_DIFFERS", sealed=sealed)

    assert found.where.file == layout.AFTER
    assert found.where.line is not None
    assert (found.where.episode, found.where.step) == ("greedy:level_0_easy:0", 3)


@SEALED
def test_a_score_in_an_evaluation_is_found_with_line_and_episode(run_copy: Path, sealed: bool) -> None:
    def praise(value: Any) -> None:
        value["episodes"][1]["scores"]["candidate_score"] = 0.9999

    edit_json(run_copy, layout.AFTER, praise)
    found = find(run_copy, "REPLAY_SCORE_DIFFERS", sealed=sealed)

    assert found.where.line == line_of(run_copy, layout.AFTER, "candidate_score", after='"greedy:level_1_medium:0"')
    assert found.where.episode == "greedy:level_1_medium:0"
    assert "0.9999" in found.what


@SEALED
@pytest.mark.parametrize(
    ("key", "value"),
    [("transition_reward", 0.777), ("action_type", "defer"), ("final_score", 0.9), ("remaining_budget", 9)],
)
def test_a_changed_rollout_line_is_found_with_line_episode_and_step(
    run_copy: Path, sealed: bool, key: str, value: Any
) -> None:
    edit_line(run_copy, 5, **{key: value})
    line = read_lines(run_copy)[4]
    found = find(run_copy, "REPLAY_STEP_DIFFERS", sealed=sealed)

    assert (found.where.file, found.where.line) == (layout.ROLLOUTS, 5)
    assert (found.where.episode, found.where.step) == (line["episode_id"], line["step_index"])
    assert found.where.pointer == f"/{key}"


@SEALED
def test_a_rollout_line_that_was_dropped_is_found_where_it_stood(run_copy: Path, sealed: bool) -> None:
    after = read_lines(run_copy)[5]
    drop_line(run_copy, 5)
    found = find(run_copy, "STEP_MISCOUNTED" if sealed else "CHAIN_BROKEN", sealed=sealed)

    assert (found.where.file, found.where.line) == (layout.ROLLOUTS, 5)
    assert (found.where.episode, found.where.step) == (after["episode_id"], after["step_index"])


@SEALED
def test_the_last_rollout_line_that_was_dropped_is_found(run_copy: Path, sealed: bool) -> None:
    *_, before, _ = read_lines(run_copy)
    count = len(read_lines(run_copy))
    drop_line(run_copy, -1)
    found = find(run_copy, "EPISODE_UNENDED" if sealed else "LOG_COUNT_DIFFERS", sealed=sealed)

    assert (found.where.file, found.where.line) == (layout.ROLLOUTS, count - 1)
    assert (found.where.episode, found.where.step) == (before["episode_id"], before["step_index"])


@SEALED
def test_evaluations_in_each_others_place_are_found(run_copy: Path, sealed: bool) -> None:
    before, after = run_copy / layout.BEFORE, run_copy / layout.AFTER
    first, second = before.read_bytes(), after.read_bytes()
    before.write_bytes(second)
    after.write_bytes(first)
    if sealed:
        reseal(run_copy)
    found = {finding.code: finding for finding in verify(run_copy, workers=1).findings}

    assert {"EVALUATIONS_SWAPPED", "POLICY_ADAPTER_DIFFERS", "TIME_REVERSED"} <= set(found)
    assert found["EVALUATIONS_SWAPPED"].where.line is not None


def test_a_file_that_was_changed_is_named_by_its_hash(run_copy: Path) -> None:
    edit_json(run_copy, layout.AFTER, lambda value: value["episodes"][0].update(wall_time_seconds=1.5))
    found = {finding.code: finding for finding in verify(run_copy, workers=1).findings}

    assert found["CHECKSUM_DIFFERS"].where.file == layout.AFTER
    assert found["EPISODE_SEAL_DIFFERS"].where.episode == read_json(run_copy, layout.AFTER)["episodes"][0]["episode_id"]
