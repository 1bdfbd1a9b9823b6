from __future__ import annotations

import pytest

from molforge_eval.report.assembly import assemble_evidence
from molforge_eval.report.transcripts import ranked


@pytest.fixture
def scored(rescored, random_evaluation, plan):
    """Give the sampled episodes scores in the order of the file, the last one to all that follow."""

    def make(*scores):
        part = next(part for part in plan.parts if part.name == "sampled")
        cells = [("sampled", task, seed) for task in part.tasks for seed in part.seeds]
        given = (*scores, *([scores[-1]] * (len(cells) - len(scores))))
        return rescored(random_evaluation, dict(zip(cells, given, strict=True)))

    return make


def place(evaluation, task, seed) -> int:
    found = (
        number
        for number, episode in enumerate(evaluation.episodes)
        if (episode.part, episode.scenario_id, episode.seed) == ("sampled", task, seed)
    )
    return next(found)


def test_best_median_and_worst_are_those_of_the_deciding_part(scored) -> None:
    evaluation = scored(0.9, 0.1, 0.5)
    easy = [place(evaluation, "level_0_easy", seed) for seed in range(3)]

    assert ranked(evaluation, "sampled") == [("best", easy[0]), ("median", easy[2]), ("worst", easy[1])]


def test_without_a_counted_episode_there_is_nothing_to_rank(scored) -> None:
    assert ranked(scored(None), "sampled") == []


def test_an_episode_that_is_several_of_them_is_shown_once_and_says_so(check, plan, scored) -> None:
    evidence = assemble_evidence(check(None, scored(0.5), plan))

    assert [(script.key, script.also) for script in evidence.transcripts] == [("best", ("median", "worst"))]


def test_the_pair_is_one_task_and_seed_and_stands_first(check, plan, scored) -> None:
    evidence = assemble_evidence(check(scored(0.2), scored(0.9, 0.1, 0.4), plan))
    left, right = evidence.transcripts[:2]

    assert (left.key, right.key) == ("before", "after")
    assert (left.task, left.seed) == (right.task, right.seed)
    assert evidence.number(right.score).value - evidence.number(left.score).value == pytest.approx(0.2)
    assert [script.key for script in evidence.transcripts[2:]] == ["best", "median", "worst"]


def test_the_calls_of_a_transcript_are_counted_from_its_episode(check, plan, scored) -> None:
    after = scored(0.9, 0.1, 0.5)
    evidence = assemble_evidence(check(None, after, plan))
    best = after.episodes[place(after, "level_0_easy", 0)]

    assert evidence.number("transcript.best.calls").value == len(best.steps)
    assert [step.tool for step in evidence.transcripts[0].steps] == [step.tool for step in best.steps][:12]


def test_a_molecule_is_drawn_where_it_changed_with_the_slot_of_the_edit(check, plan, scored) -> None:
    after = scored(0.9, 0.1, 0.5)
    evidence = assemble_evidence(check(None, after, plan))
    for script in evidence.transcripts:
        molecule = script.start.code
        episode = after.episodes[int(script.pointer.rsplit("/", 1)[1])]
        for step, record in zip(script.steps, episode.steps, strict=False):
            assert (step.drawing is None) == (record.molecule == molecule)
            if step.drawing is not None and record.action_type == "edit":
                assert step.drawing.changed == record.arguments["slot"]
            molecule = record.molecule
