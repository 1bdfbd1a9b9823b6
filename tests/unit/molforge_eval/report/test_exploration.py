from __future__ import annotations

import polars as pl
import pytest

from molforge_eval.report.exploration import ceiling_molecules, explore, submissions, visited_curve
from molforge_eval.report.molecule_map import SIDE, molecule_map, place_of, shade_of
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.scores import Sides
from molforge_eval.report.vega_lite import specification_of
from molforge_eval.rollout_table import ROLLOUT_SCHEMA


def log(*lines: dict[str, object]) -> pl.DataFrame:
    return pl.DataFrame([{"action_type": "edit", **line} for line in lines], schema=dict(ROLLOUT_SCHEMA))


LINES = (
    {"molecule": "0121", "trainer_step": 0},
    {"molecule": "0021", "trainer_step": 0},
    {"molecule": "0021", "trainer_step": 2, "action_type": "submit", "ended_by": "submit"},
    {"molecule": "0121", "trainer_step": 4},
    {"molecule": "2000", "trainer_step": 4},
    {"molecule": "2000", "trainer_step": 6, "action_type": "submit", "ended_by": None},
)


def numbers_of(rollouts: pl.DataFrame, sides: Sides | None = None):
    book = NumberBook({})
    exploration = explore(book, rollouts, sides)
    return exploration, {number.id: number for number in book.numbers}


def test_the_molecule_of_the_ceiling_is_the_one_that_its_calls_submit() -> None:
    assert ceiling_molecules() == {"level_0_easy": "0000", "level_1_medium": "0000", "level_2_hard": "2000"}


def test_only_molecules_of_the_space_count_and_a_third_without_one_has_none() -> None:
    steps = ("0" * 5, "0121", "0021")
    _, numbers = numbers_of(log(*({"molecule": code, "trainer_step": step} for step, code in enumerate(steps))))

    assert (numbers["explore.visited_early"].value, numbers["explore.visited_late"].value) == (0, 1)


def test_fewer_than_three_steps_have_no_last_third() -> None:
    _, numbers = numbers_of(log({"molecule": "0121", "trainer_step": 0}))
    late = numbers["explore.visited_late"]

    assert (late.value, late.reason) == (None, "the log has fewer than three steps")


def test_visits_are_lines_and_a_submission_is_one_that_ended_its_episode() -> None:
    exploration, numbers = numbers_of(log(*LINES))
    cells = {cell.code: (cell.visits, cell.trained, cell.ceiling_of) for cell in exploration.cells}

    assert cells == {
        "0000": (0, 0, ("easy", "medium")),
        "0021": (2, 1, ()),
        "0121": (2, 0, ()),
        "2000": (2, 0, ("hard",)),
    }
    assert numbers["explore.trained"].value == 1
    assert numbers["explore.ceiling_step"].value == 4


def test_early_and_late_count_unlike_molecules_of_the_first_and_the_last_third_of_the_steps() -> None:
    steps = [{"molecule": code, "trainer_step": step} for step, code in enumerate(("0000", "0001", "0001", "0001"))]
    _, numbers = numbers_of(log(*steps, {"molecule": "0002", "trainer_step": 0}))

    assert (numbers["explore.visited_early"].value, numbers["explore.visited_late"].value) == (2, 1)


def test_the_curve_counts_each_molecule_at_its_first_step_and_never_falls() -> None:
    (note,) = visited_curve(log(*LINES))

    assert [(point.step, point.value) for point in note.curve.points] == [(0, 2), (2, 2), (4, 3), (6, 3)]
    assert visited_curve(log()) == ()


def test_a_log_without_molecules_and_evaluations_that_are_missing_leave_numbers_unknown() -> None:
    exploration, numbers = numbers_of(log())

    assert {number.value for number in numbers.values()} == {None}
    assert all(number.reason for number in numbers.values())
    assert [cell.code for cell in exploration.cells] == ["0000", "2000"]
    assert (exploration.top_before, exploration.top_after) == (None, None)


def test_submissions_are_counted_by_molecule_and_against_the_ceiling_of_their_own_task(
    heuristic_evaluation, plan
) -> None:
    sides = Sides(heuristic_evaluation, None, plan)
    pairs = submissions(heuristic_evaluation, "sampled")
    exploration, numbers = numbers_of(log(), sides)
    at_ceiling = [code == ceiling_molecules()[task] for task, code in pairs]

    assert len(pairs) == numbers["explore.before_submissions"].value > 0
    assert numbers["explore.before_molecules"].value == len({code for _, code in pairs})
    assert numbers["explore.before_at_ceiling"].value == pytest.approx(sum(at_ceiling) / len(at_ceiling))
    assert numbers["explore.after_submissions"].reason == "the evaluation after training is missing"
    assert sum(cell.before for cell in exploration.cells) == len(pairs)
    assert exploration.top_before in {code for _, code in pairs}


def test_a_code_outside_the_space_has_no_cell() -> None:
    exploration, _ = numbers_of(log({"molecule": "9999", "trainer_step": 0}, {"molecule": "1111", "trainer_step": 0}))

    assert [cell.code for cell in exploration.cells] == ["0000", "1111", "2000"]


def test_every_molecule_has_a_place_of_its_own() -> None:
    from molforge_env.molecules import MOLECULES

    places = {place_of(code) for code in MOLECULES}

    assert places == {(column, row) for column in range(SIDE) for row in range(SIDE)}


@pytest.mark.parametrize(
    ("visits", "words"), [(0, "not visited"), (9, "1 to 9"), (10, "10 to 99"), (1_000_000, "1000 and more")]
)
def test_a_shade_names_its_range(visits, words) -> None:
    assert shade_of(visits)[1] == words


def test_the_map_holds_a_mark_for_each_submitted_molecule_and_each_ceiling() -> None:
    exploration, _ = numbers_of(log(*LINES))
    tables = specification_of(molecule_map(exploration))["datasets"].values()
    marks = [(row["sign"], row["times"]) for rows in tables for row in rows if "sign" in row]

    assert sorted(marks) == [("ceiling", "easy, medium"), ("ceiling", "hard")]
