from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from molforge_env.errors import UnreadableError, UsageError
from molforge_env.interface import DEFAULT_TURN_LIMIT, INTERFACE_NAME
from molforge_env.suites import SCENARIO_IDS
from molforge_eval.canonical import file_bytes
from molforge_eval.plan import Limits, check_plan, plan_digest, planned_episodes, read_plan, standard_plan


def test_the_standard_plan_is_greedy_once_and_sampled_with_sixteen_seeds_a_task() -> None:
    greedy, sampled = standard_plan().parts

    assert (greedy.name, greedy.decoding.method, greedy.tasks, greedy.seeds) == ("greedy", "greedy", SCENARIO_IDS, (0,))
    assert (sampled.name, sampled.decoding.method, sampled.tasks) == ("sampled", "sampled", SCENARIO_IDS)
    assert sampled.seeds == tuple(range(16))
    assert sampled.decoding.temperature == 1.0


def test_the_standard_plan_is_strict_and_names_the_interface() -> None:
    plan = standard_plan()

    assert plan.reward_mode == "assay_gated"
    assert plan.interface == INTERFACE_NAME
    assert plan.turn_limit == DEFAULT_TURN_LIMIT
    assert {part.suite for part in plan.parts} == {"official"}


def test_the_plan_of_another_suite_differs_in_the_suite_alone() -> None:
    official, holdout = standard_plan(seeds=3), standard_plan(suite="holdout", seeds=3)

    assert {episode.suite for episode in planned_episodes(holdout)} == {"holdout"}
    parts = [part.model_copy(update={"suite": "official"}) for part in holdout.parts]
    assert holdout.model_copy(update={"parts": tuple(parts)}) == official


def test_without_seeds_only_the_greedy_part_is_planned() -> None:
    assert [part.name for part in standard_plan(seeds=0).parts] == ["greedy"]


def test_every_cell_is_planned_once_with_its_own_name() -> None:
    episodes = list(planned_episodes(standard_plan(seeds=2)))

    assert len(episodes) == len({episode.episode_id for episode in episodes}) == 3 + 6
    assert episodes[0].episode_id == "greedy:level_0_easy:0"
    assert episodes[-1].episode_id == "sampled:level_2_hard:1"


def test_equal_plans_have_equal_digests_and_a_changed_one_has_another() -> None:
    assert plan_digest(standard_plan()) == plan_digest(standard_plan())
    assert plan_digest(standard_plan()) != plan_digest(standard_plan(temperature=0.9))


@pytest.mark.parametrize(
    "arguments",
    [
        {"seeds": -1},
        {"temperature": -0.5},
        {"temperature": 0.0},
        {"top_p": 0.0},
        {"top_k": -1},
        {"limits": Limits(max_new_tokens=0)},
        {"limits": Limits(max_new_tokens=100, max_completion_length=50)},
        {"limits": Limits(turn_limit=0)},
        {"run_id": "not an id"},
    ],
)
def test_a_plan_that_cannot_be_played_is_refused_in_three_lines(arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refusal:
        standard_plan(**arguments)

    assert len(str(refusal.value).splitlines()) == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tasks": ("level_9",)}, "level_9"),
        ({"tasks": (SCENARIO_IDS[0], SCENARIO_IDS[0])}, "repeat"),
        ({"seeds": ()}, "empty"),
        ({"seeds": (1, 1)}, "repeat"),
    ],
)
def test_unknown_or_repeated_cells_are_refused(change: dict[str, Any], said: str) -> None:
    plan = standard_plan()
    part = plan.parts[1].model_copy(update=change)

    with pytest.raises(UsageError, match=said):
        check_plan(plan.model_copy(update={"parts": (plan.parts[0], part)}))


def test_two_parts_of_one_name_are_refused() -> None:
    plan = standard_plan()

    with pytest.raises(UsageError, match="repeat a name"):
        check_plan(plan.model_copy(update={"parts": (plan.parts[0], plan.parts[0])}))


def test_a_written_plan_is_read_back_equal(tmp_path: Path) -> None:
    plan = standard_plan(run_id="run-0123456789ab", observation_length="compact")
    (tmp_path / "eval_plan.json").write_bytes(file_bytes(plan))

    assert read_plan(tmp_path / "eval_plan.json") == plan


@pytest.mark.parametrize("content", [b"{}", b"not json", b'{"parts": NaN}', b" " * 1_000_001])
def test_a_file_that_is_no_plan_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(content)

    with pytest.raises(UnreadableError, match=r"plan\.json"):
        read_plan(file)


def test_an_absent_plan_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="cannot be read"):
        read_plan(tmp_path / "absent.json")
