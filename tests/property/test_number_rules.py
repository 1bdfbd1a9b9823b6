"""One row of a run is changed, and the numbers that move are those that say they are made from it, and no other."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from evidence_builder import build_run, edit_json, edit_line, read_json, read_lines, reseal

from molforge_eval import layout
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.number_rows import NumberRows
from molforge_eval.report.recount import assemble_again
from molforge_eval.run_directory import load

NEED_NOT_MOVE = (
    # They count, and a value that stays a value stays counted.
    "*.gaps", "*.points", "*_counted", "*.pairs", "training.episodes", "training.calls", "sentinel.episodes",
    "conduct.*.calls", "conduct.*.episodes", "conduct.*.steps", "conduct.*.no_call", "conduct.*.submitted",
    "conduct.*.errored",
    # Another row may hold the extreme, or the same value.
    "*.lowest", "*.peak", "*_distinct", "training.visited", "explore.*",
    # They move when a threshold is passed, or by whole steps.
    "*.holm", "*.p", "tasks.rose", "tasks.up", "seeds.*", "metrics.*", "sampled.seeds_needed",
    "sampled.episodes_needed", "sampled.detectable", "sentinel.correlation", "sentinel.unscored",
    # They look for one word among several, and another may take its place.
    "conduct.*.share_*", "conduct.*.vetoed", "conduct.*.invalid", "conduct.*.veto_*", "conduct.*.objected",
    "conduct.*.objected_episodes", "mix.*.*",
    # Means of chosen episodes, and episodes that are shown: the choice may leave the row out.
    "sentinel.*_paid_score", "sentinel.*scored_reward", "transcript.*.*",
    # Bounds of a bootstrap are quantiles.
    "score.*.before_low", "score.*.before_high", "score.*.after_low", "score.*.after_high", "score.*.low",
    "score.*.high",
    # Unknown where no difference may be claimed.
    "score.mean.gap", "score.*.greedy_difference",
)  # fmt: skip
"""Numbers that a change of one of their rows may leave as they are; every other one has to move."""


class Spot(NamedTuple):
    """One value of a run."""

    file: str
    line: int | None
    """Line of a log; `None` for a record of one JSON text."""
    pointer: str


class Mutated(NamedTuple):
    """What a change of one value did."""

    said: frozenset[str]
    """Numbers that say they are made from it, themselves or through another number."""
    moved: frozenset[str]
    """Numbers with another value afterwards."""


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("mutated") / "run"
    return build_run(root, after="random_valid+heuristic", seeds=3, steps=12, plots=False)


@pytest.fixture(scope="module")
def before(base) -> tuple[Evidence, Mapping[str, frozenset[Spot]]]:
    return spots_of(base)


def spots_of(root: Path) -> tuple[Evidence, Mapping[str, frozenset[Spot]]]:
    """The evidence of a run, and for each number every value that it is made from, through other numbers too."""
    run = load(root)
    evidence = assemble_again(run, ())
    rows = NumberRows(run, evidence)
    own = {number.id: {Spot(*row[:3]) for row in rows.of(number)} for number in evidence.numbers}
    needs = {number.id: number.needs for number in evidence.numbers}

    @functools.cache
    def all_of(number_id: str) -> frozenset[Spot]:
        return frozenset(own[number_id]).union(*(all_of(other) for other in needs[number_id]))

    return evidence, {number_id: all_of(number_id) for number_id in own}


@pytest.fixture
def mutate(base, before, tmp_path) -> Callable[[Spot, Any], Mutated]:
    """Change one value of a copy, seal it again, compute the evidence again."""
    evidence, spots = before

    def change(spot: Spot, value: Any) -> Mutated:
        root = Path(shutil.copytree(base, tmp_path / f"run-{len(list(tmp_path.iterdir()))}"))
        if spot.line is None:
            edit_json(root, spot.file, lambda record: put(record, spot.pointer, value))
        else:
            edit_line(root, spot.line, spot.file, **{spot.pointer[1:]: value})
        reseal(root)
        again, spots_after = spots_of(root)
        after = {number.id: number.value for number in again.numbers}
        values = {number.id: number.value for number in evidence.numbers}
        moved = frozenset(key for key in values.keys() | after.keys() if values.get(key) != after.get(key))
        # A number may come with the change: which episode is shown as the worst depends on the scores.
        return Mutated(frozenset(key for key, found in {**spots_after, **spots}.items() if spot in found), moved)

    return change


def put(record: Any, pointer: str, value: Any) -> None:
    *steps, last = pointer.split("/")[1:]
    for step in steps:
        record = record[int(step) if isinstance(record, list) else step]
    record[last] = value


def check(mutated: list[Mutated]) -> None:
    said = frozenset().union(*(one.said for one in mutated))
    moved = frozenset().union(*(one.moved for one in mutated))
    still = {key for key in said - moved if not any(fnmatchcase(key, pattern) for pattern in NEED_NOT_MOVE)}

    assert said
    assert moved <= said, sorted(moved - said)
    assert not still, sorted(still)


def spots_of_scores(root: Path) -> Iterator[tuple[Spot, float]]:
    for file in layout.EVALUATIONS:
        for number, episode in enumerate(read_json(root, file)["episodes"]):
            yield Spot(file, None, f"/episodes/{number}/final_score"), episode["final_score"]


@pytest.mark.parametrize("place", [0, 2, 3, 7, 11, 13, 16, 23])
def test_the_score_of_one_episode_moves_the_numbers_that_are_made_from_it(base, mutate, place) -> None:
    spots = list(spots_of_scores(base))
    spot, score = spots[place % len(spots)]

    check([mutate(spot, 0.97 if score < 0.9 else 0.03), mutate(spot, 0.5 if score != 0.5 else 0.4)])


@pytest.mark.parametrize(("place", "key"), [(0, "loss"), (5, "reward"), (11, "grad_norm"), (6, "kl"), (11, "reward")])
def test_one_value_of_the_trainer_moves_its_curve_and_nothing_else(base, mutate, place, key) -> None:
    line, row = [
        (number, row)
        for number, row in enumerate(read_lines(base, layout.TRAINER_LOG), start=1)
        if row["type"] == "train"
    ][place]
    spot = Spot(layout.TRAINER_LOG, line, f"/{key}")

    check([mutate(spot, row[key] + 5.0), mutate(spot, row[key] - 5.0)])


@pytest.mark.parametrize("place", [1, 9, 20])
def test_one_other_score_of_an_episode_moves_its_metric_and_nothing_else(base, mutate, place) -> None:
    played = [
        (file, number, episode)
        for file in layout.EVALUATIONS
        for number, episode in enumerate(read_json(base, file)["episodes"])
        if episode["part"] == "sampled"
    ]
    file, number, episode = played[place % len(played)]
    name = min(set(episode["scores"]) - {"final_score", "submission_score", "progress_score"})
    spot = Spot(file, None, f"/episodes/{number}/scores/{name}")
    mutated = [mutate(spot, 0.97), mutate(spot, 0.31)]

    check(mutated)
    assert all(key.startswith(("metric.", "metrics.")) for one in mutated for key in one.moved)


@pytest.mark.parametrize(("key", "value"), [("alpha", 0.01), ("margin", 0.11)])
def test_a_value_of_the_plan_moves_the_numbers_that_are_judged_by_it(base, mutate, key, value) -> None:
    mutated = mutate(Spot(layout.PLAN, None, f"/decision/{key}"), value)

    assert f"rule.{key}" in mutated.moved
    check([mutated])


@pytest.mark.parametrize(
    ("place", "key"),
    [
        (0, "training_reward"),
        (40, "training_reward"),
        (-1, "training_reward"),
        (2, "episode_score"),
        (-2, "episode_score"),
    ],
)
def test_the_reward_of_one_training_episode_moves_the_numbers_that_are_made_from_it(base, mutate, place, key) -> None:
    ends = [
        (number, line) for number, line in enumerate(read_lines(base), start=1) if line["training_reward"] is not None
    ]
    number, line = ends[place]
    spot = Spot(layout.ROLLOUTS, number, f"/{key}")

    others = (line[key] + 4.0, line[key] - 4.0) if key == "training_reward" else (0.42, 0.77)

    check([mutate(spot, value) for value in others])


@pytest.mark.parametrize(
    ("place", "key", "value"),
    [
        (0, "molecule", "3333"),
        (-1, "molecule", "3130"),
        (5, "action_type", "defer"),
        (-5, "governance_status", "policy_veto"),
        (3, "status", "invalid"),
        (-1, "vetoes", ["toxicologist"]),
        (-1, "remaining_budget", 1),
        (-1, "ended_by", "no_call"),
    ],
)
def test_one_line_of_the_rollout_log_moves_the_numbers_that_are_made_from_it(base, mutate, place, key, value) -> None:
    number = range(1, len(read_lines(base)) + 1)[place]

    check([mutate(Spot(layout.ROLLOUTS, number, f"/{key}"), value)])


@pytest.mark.parametrize("key", ["training_seconds", "total_parameters"])
def test_a_value_of_the_manifest_moves_its_number_alone(base, mutate, key) -> None:
    value = read_json(base, layout.MANIFEST)[key]
    mutated = mutate(Spot(layout.MANIFEST, None, f"/{key}"), value + 1)

    check([mutated])
    assert len(mutated.moved) == 1
