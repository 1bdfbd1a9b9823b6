"""Episodes to read: before and after of one seed, then the best, the median and the worst after training.

Everything a model wrote is cut to a readable length here; escaping is the templates' affair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, get_args

import orjson

from molforge_env.models import Slot
from molforge_env.molecules import MOLECULES
from molforge_eval import layout
from molforge_eval.records.evaluation import EpisodeRecord, Evaluation, PartName, StepRecord
from molforge_eval.report.evidence import Drawing, Transcript, TranscriptStep
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import decimal, whole
from molforge_eval.report.quoting import quote
from molforge_eval.report.scores import Sides, task_label

Rank = Literal["best", "median", "worst"]
Key = Literal["before", "after"] | Rank
MOST_STEPS = 12
MOST_VETOES = 6
LONGEST_VALUE = 160
LONGEST_ANSWER = 240
LONGEST_CLOSING = 400
_NO_SCORE = "the episode ended by env_error"
_NO_REWARD = "the laboratory was not stepped"


class Choice(NamedTuple):
    """An episode to show and what it is shown as."""

    key: Key
    evaluation: Evaluation
    number: int


def read_transcripts(book: NumberBook, sides: Sides) -> tuple[Transcript, ...]:
    """Choose the episodes to read and put their scores down.

    The pair is the task and seed of the deciding part whose change is the median one, so that it shows the run and not
    its luck; best, median and worst are those of the evaluation after training (before it, when that is all there is),
    the first of equals. An episode that is several of these is shown once.
    """
    part = sides.plan.decision.part
    chosen: list[Choice] = []
    pair = _median_pair(sides, part)
    if pair is not None and sides.before is not None and sides.after is not None:
        chosen += [Choice("before", sides.before, pair[0]), Choice("after", sides.after, pair[1])]
    last = sides.before if sides.after is None else sides.after
    also: dict[int, list[Rank]] = {}
    if last is not None:
        for rank, number in ranked(last, part):
            shown = next((place for place, old in enumerate(chosen) if old[1:] == (last, number)), None)
            if shown is None:
                chosen.append(Choice(rank, last, number))
            else:
                also.setdefault(shown, []).append(rank)
    return tuple(_transcript(book, choice, tuple(also.get(place, ())), sides) for place, choice in enumerate(chosen))


def ranked(evaluation: Evaluation, part: PartName) -> list[tuple[Rank, int]]:
    """Return the places of the best, the median and the worst episode of a part; nothing when none was counted.

    Of an even number of episodes the lower of the two in the middle is the median.
    """
    scored = sorted((score, number) for _, (number, score) in _numbered(evaluation, part))
    if not scored:
        return []
    best = min(number for score, number in scored if score == scored[-1][0])
    middle = scored[(len(scored) - 1) // 2][0]
    median = min(number for score, number in scored if score == middle)
    return [("best", best), ("median", median), ("worst", scored[0][1])]


def _median_pair(sides: Sides, part: PartName) -> tuple[int, int] | None:
    if sides.before is None or sides.after is None:
        return None
    left = dict(_numbered(sides.before, part))
    right = dict(_numbered(sides.after, part))
    changes = sorted(
        ((right[cell][1] - left[cell][1], *cell) for cell in left if cell in right),
    )
    if not changes:
        return None
    _, task, seed = changes[len(changes) // 2]
    return left[task, seed][0], right[task, seed][0]


def _numbered(evaluation: Evaluation, part: PartName) -> Iterator[tuple[tuple[str, int], tuple[int, float]]]:
    for number, episode in enumerate(evaluation.episodes):
        if episode.part == part and episode.final_score is not None:
            yield (episode.scenario_id, episode.seed), (number, episode.final_score)


def _transcript(book: NumberBook, choice: Choice, also: tuple[Rank, ...], sides: Sides) -> Transcript:
    key, evaluation, number = choice
    episode = evaluation.episodes[number]
    arm: Literal["before", "after"] = "before" if evaluation is sides.before else "after"
    file = layout.BEFORE if arm == "before" else layout.AFTER
    pointer = f"/episodes/{number}"
    score = book.put(
        f"transcript.{key}.score",
        episode.final_score,
        decimal(episode.final_score),
        (file, f"{pointer}/final_score"),
        reason=_NO_SCORE,
    )
    total = episode.total_reward
    book.put(f"transcript.{key}.reward", total, decimal(total), (file, f"{pointer}/total_reward"), reason=_NO_REWARD)
    steps = tuple(_steps(episode))
    book.put(f"transcript.{key}.calls", len(steps), whole(len(steps)), (file, f"{pointer}/steps"))
    return Transcript(
        key=key,
        also=also,
        arm=arm,
        part=episode.part,
        task=quote(episode.scenario_id, LONGEST_VALUE),
        label=task_label(episode.scenario_id),
        seed=episode.seed,
        episode_id=episode.episode_id,
        file=file,
        pointer=pointer,
        score=score,
        ended_by=episode.ended_by,
        start=_start_of(episode),
        steps=steps[:MOST_STEPS],
        omitted_steps=max(0, len(steps) - MOST_STEPS),
        closing=_closing(episode),
    )


def _start_of(episode: EpisodeRecord) -> Drawing | None:
    code = episode.scenario.start_molecule
    return Drawing(code=code, changed=None) if code in MOLECULES else None


def _steps(episode: EpisodeRecord) -> Iterator[TranscriptStep]:
    molecule = episode.scenario.start_molecule
    for step in episode.steps:
        moved = step.molecule != molecule
        yield TranscriptStep(
            step=step.step,
            turn=step.turn,
            tool=quote(step.tool, LONGEST_VALUE),
            arguments=tuple(_arguments(step.arguments)),
            status=step.status,
            error_code=quote(step.error_code, LONGEST_VALUE),
            vetoes=tuple(quote(name, LONGEST_VALUE) for name in step.vetoes[:MOST_VETOES]),
            reward=decimal(step.reward, signed=True),
            budget=whole(step.remaining_budget),
            answer=quote(" · ".join(step.response.splitlines()), LONGEST_ANSWER),
            drawing=Drawing(code=step.molecule, changed=_changed_slot(step)) if moved else None,
        )
        molecule = step.molecule


def _arguments(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in arguments.items():
        text = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
        yield quote(name, LONGEST_VALUE), quote(text, LONGEST_VALUE)


def _changed_slot(step: StepRecord) -> Slot | None:
    slot = step.arguments.get("slot")
    return next((known for known in get_args(Slot) if known == slot), None) if step.action_type == "edit" else None


def _closing(episode: EpisodeRecord) -> str | None:
    if episode.ended_by not in {"no_call", "malformed_call", "length_limit"} or not episode.turns:
        return None
    return quote(episode.turns[-1].raw_completion, LONGEST_CLOSING)
