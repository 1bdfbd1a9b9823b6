"""How often training went on after a stop, from where, and what gave way; nothing is said of a run without a stop."""

from __future__ import annotations

from molforge_eval import layout
from molforge_eval.report.number_book import NumberBook
from molforge_eval.report.numerals import whole
from molforge_eval.report.section_evidence import Resumption
from molforge_eval.resumes import resumes_of
from molforge_eval.run_directory import RunDirectory

MOST_RESUMPTIONS = 12
"""Places that the page names; a run that was stopped more often has them in its log."""


def put_resumptions(book: NumberBook, run: RunDirectory) -> tuple[Resumption, ...]:
    """Put down how often training went on, and list the places.

    Args:
        book: Where the numbers go.
        run: The run; its superseded episodes are those that only the whole log has.
    """
    resumes = resumes_of(run.every_trainer_row)
    if not resumes:
        return ()
    given_way = run.every_rollout["episode_id"].n_unique() - run.rollouts["episode_id"].n_unique()
    book.put("resume.count", len(resumes), whole(len(resumes)), (layout.TRAINER_LOG, "column type"))
    book.put("resume.superseded", given_way, whole(given_way), (layout.ROLLOUTS, "column episode_id"))
    places = resumes[:MOST_RESUMPTIONS]
    for number, resume in enumerate(places):
        source = (layout.TRAINER_LOG, f"column step, lines {resume.line}–{resume.line}")  # noqa: RUF001 # a range of lines
        book.put(f"resume.{number}.step", resume.step, whole(resume.step), source)
    return tuple(Resumption(number=number, step=resume.step) for number, resume in enumerate(places))
