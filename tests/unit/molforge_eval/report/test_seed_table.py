from __future__ import annotations

import pytest

from molforge_eval.report.assembly import assemble_evidence
from molforge_eval.report.curves import Size
from molforge_eval.report.seed_chart import has_pair, seed_chart
from molforge_eval.report.seed_table import MOST_LINES, MOST_LINES_WITH_TASKS, counted_episodes, evenly
from molforge_eval.report.vega_lite import specification_of

TASKS = ("level_0_easy", "level_1_medium", "level_2_hard")


@pytest.fixture
def scored(rescored, random_evaluation, plan):
    """Give every sampled episode a score by task and seed."""

    def make(score):
        part = next(part for part in plan.parts if part.name == "sampled")
        scores = {("sampled", task, seed): score(task, seed) for task in part.tasks for seed in part.seeds}
        return rescored(random_evaluation, scores)

    return make


def test_the_mean_of_a_seed_weighs_its_tasks_alike_and_its_difference_is_after_minus_before(
    check, plan, scored
) -> None:
    low = {"level_0_easy": 0.1, "level_1_medium": 0.2, "level_2_hard": 0.6}
    before = scored(lambda task, seed: low[task] + 0.01 * seed)
    after = scored(lambda _task, seed: 0.5 + 0.01 * (seed % 2))
    evidence = assemble_evidence(check(before, after, plan))
    line = evidence.seed_table.lines[1]

    assert [row.seed for row in evidence.seed_table.lines] == list(plan.parts[1].seeds)
    assert line.seed == 1
    assert [pair.before for pair in line.tasks] == pytest.approx([0.11, 0.21, 0.61])
    assert evidence.number("seed.1.level_2_hard.before").value == pytest.approx(0.61)
    assert evidence.number("seed.1.mean.before").value == pytest.approx(0.31)
    assert evidence.number("seed.1.mean.after").value == pytest.approx(0.51)
    assert evidence.number("seed.1.mean.difference").text == "+0.20"
    assert evidence.number("seeds.rose").value == len(
        [row for row in evidence.seed_table.lines if row.mean.after > row.mean.before]
    )


def test_a_number_of_a_seed_names_the_episodes_that_it_comes_from(check, plan, scored) -> None:
    after = scored(lambda _task, _seed: 0.5)
    evidence = assemble_evidence(check(scored(lambda _task, seed: 0.01 * seed), after, plan))
    place = counted_episodes(after, "sampled")["level_1_medium", 2].number

    assert [source.part for source in evidence.number("seed.2.level_1_medium.after").sources] == [
        f"/episodes/{place}/final_score"
    ]
    assert len(evidence.number("seed.2.mean.difference").sources) == 2 * len(TASKS)


def test_without_a_side_the_other_is_shown_and_no_difference_stated(check, plan, scored) -> None:
    evidence = assemble_evidence(check(scored(lambda _task, _seed: 0.25), None, plan))

    assert {line.mean for line in evidence.seed_table.lines} == {(0.25, None)}
    assert evidence.number("seed.0.mean.before").value == 0.25
    assert evidence.number("seed.0.mean.after").reason == "not every task of the seed was counted"
    assert evidence.number("seed.0.mean.difference").value is None
    assert not evidence.seed_table.is_claimed


def test_errors_leave_the_scores_of_the_seeds_and_withhold_their_differences(evidence_of) -> None:
    evidence = evidence_of("withheld")
    differences = {n.value for n in evidence.numbers if n.id.startswith("seed.") and n.id.endswith(".difference")}

    assert differences == {None}
    assert all(line.mean.after is not None for line in evidence.seed_table.lines)


def test_one_changed_episode_moves_its_own_number_and_its_seed_alone(check, plan, scored, rescored) -> None:
    before = scored(lambda _task, seed: 0.1 + 0.01 * seed)
    after = scored(lambda _task, seed: 0.4 + 0.02 * (seed % 3))
    changed = rescored(after, {("sampled", "level_0_easy", 3): 0.9})
    first, second = (assemble_evidence(check(before, side, plan)) for side in (after, changed))
    moved = {n.id for n in first.numbers if n.id.startswith("seed.") and second.number(n.id).value != n.value}

    assert moved == {"seed.3.level_0_easy.after", "seed.3.mean.after", "seed.3.mean.difference"}


def test_many_seeds_are_shown_by_their_means_and_so_many_of_them_as_can_be_read(check, plan, random_evaluation) -> None:
    many = tuple(range(1000))
    parts = tuple(part.model_copy(update={"seeds": many}) if part.name == "sampled" else part for part in plan.parts)
    table = assemble_evidence(check(random_evaluation, random_evaluation, plan.model_copy(update={"parts": parts})))
    seeds = [line.seed for line in table.seed_table.lines]

    assert len(seeds) == MOST_LINES > MOST_LINES_WITH_TASKS
    assert (seeds[0], seeds[-1], table.seed_table.planned) == (0, 999, 1000)
    assert not table.seed_table.has_tasks
    assert not [number.id for number in table.numbers if number.id.startswith("seed.0.level")]


def test_the_kept_items_are_spread_over_all_of_them() -> None:
    assert evenly(list(range(7)), 3) == (0, 3, 6)


def kinds_of(chart) -> set[str]:
    return {row["kind"] for rows in specification_of(chart)["datasets"].values() for row in rows if "kind" in row}


def test_a_seed_that_fell_has_a_mark_of_its_own(evidence_of) -> None:
    assert kinds_of(seed_chart(evidence_of("regressed"), size=Size(600, 0))) == {"before", "after, fell"}
    assert "after, fell" not in kinds_of(seed_chart(evidence_of("improved"), size=Size(600, 0)))


def test_nothing_is_said_to_have_risen_where_no_difference_is_claimed(evidence_of) -> None:
    assert kinds_of(seed_chart(evidence_of("withheld"), size=Size(600, 0))) == {"before", "after"}
    assert not has_pair(evidence_of("no plan"))


def test_strange_task_names_are_shown_escaped_and_break_no_id(check, plan, random_evaluation) -> None:
    from molforge_eval.report.figures import draw_figures
    from molforge_eval.report.page import render_page

    strange = ("mean", '"><script>alert(1)</script>', "a.b", "mean")
    parts = tuple(part.model_copy(update={"tasks": strange}) for part in plan.parts)
    asked = plan.model_copy(update={"parts": parts})
    episodes = tuple(
        episode.model_copy(update={"scenario_id": strange[place % 3], "seed": place // 3})
        for place, episode in enumerate(random_evaluation.episodes)
    )
    played = random_evaluation.model_copy(update={"episodes": episodes})
    evidence = assemble_evidence(check(played, played, asked))
    page = render_page(evidence, draw_figures(evidence)).decode()

    assert evidence.seed_table.has_tasks
    assert [row.task for row in evidence.tasks] == ["task-0", "task-1", "task-2"]
    assert "<script>alert(1)" not in page
    assert "seed.0.task-1.before" in evidence.by_id
