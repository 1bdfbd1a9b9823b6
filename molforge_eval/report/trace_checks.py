"""What a check counted, counted once more: the run is validated, and played again where the packet says it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from molforge_eval.report.assembly import put_checks
from molforge_eval.report.checking import check_run, without_packet
from molforge_eval.report.number_book import Number, NumberBook
from molforge_eval.report.provenance import list_artifacts
from molforge_eval.report.trace_subject import Subject

OnEpisodes = Callable[[int, int], None]
OF_CHECKS = ("check.", "findings.", "artifacts.")
"""Numbers that say what was looked at; their ids begin so."""
_OF_MODEL = "_regenerated"
"""End of the ids of what a model has written again."""
_OF_WHOLE_RUN = ("check.records", "check.plots", "findings.")
"""What a packet cannot give: it does not carry every record, and is itself among what is checked."""


def count_again(subject: Subject, on_episodes: OnEpisodes | None = None) -> Mapping[str, Number]:
    """Check the run and count; the model itself is not asked again.

    Args:
        subject: The run with its packet.
        on_episodes: Called with episodes played again and episodes in all.
    """
    checked = check_run(without_packet(subject.run), replay=subject.evidence.level.replayed, on_episodes=on_episodes)
    book = NumberBook({entry.path: entry.sha256 for entry in checked.files})
    put_checks(book, checked.result)
    list_artifacts(book, checked.files)
    return {number.id: number for number in book.numbers}


def why_not_counted(subject: Subject, number_id: str) -> str | None:
    """Say why a number of a check is not counted once more; `None` when it is."""
    if not number_id.startswith(OF_CHECKS):
        return None
    asked_model = subject.evidence.level.regenerated is not None
    if number_id.startswith("check.") and number_id.endswith(_OF_MODEL):
        return "the model has to write again: `molforge-eval verify RUN --regenerate` counts it"
    if number_id.startswith("findings.") and asked_model:
        return "the model took part in the check: `molforge-eval verify RUN --regenerate` counts them"
    if subject.run.is_packet and number_id.startswith(_OF_WHOLE_RUN):
        return "a packet does not carry every record of its run; trace the run itself"
    return None
