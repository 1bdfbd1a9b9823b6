from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from molforge_env.holdout import start_molecules
from molforge_env.suites import SCENARIO_IDS, resolve_scenario
from molforge_train.config import resolve
from molforge_train.prompts import prompt_rows


def rows_of(**flags: str) -> list[dict]:
    return prompt_rows(resolve("tiny-cpu", flags, {}, now=datetime(2026, 1, 1, tzinfo=UTC)).configuration)


def test_every_row_has_its_own_seed_and_resolves_to_a_scenario() -> None:
    rows = rows_of(dataset_size="60")

    assert len({row["seed"] for row in rows}) == 60
    for row in rows:
        scenario = resolve_scenario(suite=row["suite"], scenario_id=row["scenario_id"], seed=row["seed"])
        assert scenario.seed == row["seed"]


def test_tasks_take_turns_and_each_has_the_share_of_official_scenarios() -> None:
    rows = rows_of(dataset_size="60", canonical_share="0.25")

    assert [row["scenario_id"] for row in rows[:6]] == [*SCENARIO_IDS, *SCENARIO_IDS]
    assert Counter(row["scenario_id"] for row in rows if row["suite"] == "official") == dict.fromkeys(SCENARIO_IDS, 5)


def test_rows_come_from_the_seed_alone() -> None:
    assert rows_of() == rows_of()
    assert rows_of(seed="2") != rows_of(seed="1")


def test_a_share_of_one_plays_official_scenarios_only() -> None:
    assert {row["suite"] for row in rows_of(canonical_share="1")} == {"official"}
    assert {row["suite"] for row in rows_of(canonical_share="0")} == {"randomized"}


@given(seed=st.integers(0, 2**31 - 1), share=st.floats(0.0, 1.0))
def test_no_prompt_begins_where_a_holdout_variant_begins(seed: int, share: float) -> None:
    reserved = {code for name in SCENARIO_IDS for code in start_molecules(name)}
    for row in rows_of(seed=str(seed), canonical_share=str(share), dataset_size="12"):
        scenario = resolve_scenario(suite=row["suite"], scenario_id=row["scenario_id"], seed=row["seed"])
        assert scenario.start_molecule not in reserved
