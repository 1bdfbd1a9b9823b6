from __future__ import annotations

import polars as pl
import pytest

from molforge_env.suites import resolve_scenario
from molforge_env.tools import ToolSession
from molforge_eval.calls import call_tool
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.reviews import MOST_PLAYED, play_objections, put_reviews, vetoes_of_evaluation
from molforge_eval.rollout_table import ROLLOUT_SCHEMA


def log(*lines: tuple[int, list[str] | None]) -> pl.DataFrame:
    rows = [{"trainer_step": step, "vetoes": vetoes} for step, vetoes in lines]
    return pl.DataFrame(rows, schema=dict(ROLLOUT_SCHEMA))


def numbers_of(before, after, rollouts):
    book = NumberBook({})
    put_reviews(book, before, after, rollouts)
    return {number.id.removeprefix("conduct."): number for number in book.numbers}


LINES = (
    (0, ["toxicologist"]),
    (0, []),
    (0, ["toxicologist", "assay_planner"]),
    (0, None),
    (1, ["process_chemist"]),
    (2, ["assay_planner", "assay_planner"]),
    (2, []),
)


def test_each_reviewer_is_counted_once_a_call_over_the_calls_of_the_phase() -> None:
    numbers = numbers_of(None, None, log(*LINES))

    assert numbers["early.veto_toxicologist"].value == pytest.approx(2 / 4)
    assert numbers["early.veto_assay_planner"].value == pytest.approx(1 / 4)
    assert numbers["early.veto_process_chemist"].value == 0.0
    assert numbers["late.veto_assay_planner"].value == pytest.approx(1 / 2)


def test_what_is_not_recorded_is_unknown_with_its_reason() -> None:
    numbers = numbers_of(None, None, log(*LINES))

    assert numbers["early.objected"].reason == "the rollout log does not record it"
    assert numbers["before.objected"].reason == "no episode could be played again"
    assert numbers["before.veto_toxicologist"].reason == "the phase has no call"


def test_objections_are_those_of_the_laboratory(random_evaluation) -> None:
    found = play_objections(random_evaluation)
    wanted = calls = 0
    for episode in random_evaluation.episodes:
        session = ToolSession(observation_length="full")
        session.start(
            resolve_scenario(suite=episode.suite, scenario_id=episode.scenario_id, seed=episode.seed),
            reward_mode=episode.reward_mode,
        )
        for step in episode.steps:
            outcome = call_tool(session, step.tool, step.arguments).outcome
            calls += 1
            wanted += outcome is not None and len(outcome.objections) > 0

    assert found == (len(random_evaluation.episodes), calls, wanted)
    assert 0 < wanted < calls


def test_the_vetoes_of_an_evaluation_are_those_of_its_steps(random_evaluation) -> None:
    found = vetoes_of_evaluation(random_evaluation)
    steps = [step for episode in random_evaluation.episodes for step in episode.steps]

    assert found.calls == len(steps)
    assert found.by_role["toxicologist"] == len([step for step in steps if "toxicologist" in step.vetoes]) > 0


def test_of_many_episodes_some_are_played_and_an_unknown_scenario_is_passed_over(random_evaluation) -> None:
    first = random_evaluation.episodes[0]
    strange = first.model_copy(update={"scenario_id": "level_9_unknown"})
    many = random_evaluation.model_copy(update={"episodes": (strange, *([first] * (MOST_PLAYED + 50)))})

    assert play_objections(many).episodes == MOST_PLAYED - 1
