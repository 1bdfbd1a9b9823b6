"""Traces of evaluation episodes to read: step, action, and reward or error, one scenario before and after side by side.

A trace names no argument, no molecule and no answer of the laboratory; what it does name is quoted and cut.
"""

from __future__ import annotations

from collections.abc import Iterator

from molforge_eval.report.metrics import PRIMARY
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import ABSENT, decimal, whole
from molforge_eval.report.old_arms import Arm, ListedEpisode, ListedStep
from molforge_eval.report.old_evidence import Trace, TraceStep
from molforge_eval.report.quoting import quote
from molforge_eval.report.scores import LONGEST_LABEL, task_label

MOST_STEPS = 20
MOST_SCENARIOS = 4
LONGEST_ERROR = 160
_NO_SCORE = "the episode lists no final_score"


def read_traces(book: NumberBook, arms: tuple[Arm, Arm]) -> tuple[tuple[Trace, ...], ...]:
    """Return the first episode of each of the first scenarios, of both evaluations, and put their scores down."""
    tasks = tuple(dict.fromkeys(task for arm in arms for task in arm.tasks()))[:MOST_SCENARIOS]
    return tuple(tuple(_of_task(book, arms, task)) for task in tasks)


def _of_task(book: NumberBook, arms: tuple[Arm, Arm], task: str) -> Iterator[Trace]:
    for arm in arms:
        episode = next((found for found in arm.episodes if found.task == task), None)
        if episode is not None:
            yield _trace(book, arm, episode)


def _trace(book: NumberBook, arm: Arm, episode: ListedEpisode) -> Trace:
    pointer = f"/episodes/{episode.number}"
    score = episode.metrics.get(PRIMARY) if episode.is_counted() else None
    number_id = book.put(
        f"trace.{arm.name}-{episode.number}.score",
        score,
        decimal(score),
        (arm.file, f"{pointer}/final_score"),
        reason=_NO_SCORE if PRIMARY not in episode.metrics else "every entry of its trace is an error",
    )
    return Trace(
        arm=arm.name,
        label=task_label(episode.task),
        difficulty=None if episode.difficulty is None else quote(episode.difficulty, LONGEST_LABEL),
        file=arm.file,
        pointer=pointer,
        score=number_id,
        steps=tuple(_step(step) for step in episode.trace[:MOST_STEPS]),
        omitted_steps=max(0, len(episode.trace) - MOST_STEPS),
    )


def _step(step: ListedStep) -> TraceStep:
    return TraceStep(
        step=ABSENT if step.step is None else whole(step.step),
        action=None if step.action is None else quote(step.action, LONGEST_LABEL),
        reward=None if step.reward is None else decimal(step.reward, signed=True),
        error=None if step.error is None else quote(step.error, LONGEST_ERROR),
    )
