"""What a trace is about: a run, the numbers of its packet, and the same numbers computed from its records.

A packet may be a stranger's. What it says a number is, is taken from it; how that number is made is not.
"""

from __future__ import annotations

from typing import NamedTuple

from pydantic import ValidationError

from molforge_env.errors import UnreadableError
from molforge_eval import layout
from molforge_eval.ledger import Ledger
from molforge_eval.record_files import read_json
from molforge_eval.report.assembly import assemble_evidence
from molforge_eval.report.checking import check_run
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.number_book import Number, NumberWords, words_of
from molforge_eval.report.old_assembly import assemble_old_evidence
from molforge_eval.report.recount import assemble_again
from molforge_eval.run_directory import RunDirectory
from molforge_eval.shape import shape_of


class Subject(NamedTuple):
    """A run with the numbers of its packet and what its records give."""

    run: RunDirectory
    evidence: Evidence
    """Of the packet, or computed; how a number is made is never said in the packet's words."""
    again: Evidence
    """Computed now."""
    has_packet: bool


def open_subject(run: RunDirectory) -> Subject:
    """Read the packet of a run, and compute its numbers once more.

    Raises:
        UnreadableError: There is an `evidence.json` that is not that of this version.
    """
    packet = _packet_of(run)
    if packet is not None:
        again = assemble_again(run, packet.findings)
        return Subject(run, _in_own_words(packet, again), again, has_packet=True)
    assemble = assemble_old_evidence if run.format_version == 0 else assemble_evidence
    evidence = assemble(check_run(run, replay=False))
    return Subject(run, evidence, evidence, has_packet=False)


def _in_own_words(packet: Evidence, again: Evidence) -> Evidence:
    """Take values and printed texts from a packet, and all else that is said of a number from this version.

    A packet may be a stranger's: its words would explain a forged number away, its needs would never end.
    """
    numbers = tuple(_own_words(number, again.by_id.get(number.id)) for number in packet.numbers)
    return packet.model_copy(update={"numbers": numbers})


def _own_words(number: Number, again: Number | None) -> Number:
    if again is not None:
        own = {"name": again.name, "formula": again.formula, "sources": again.sources, "needs": again.needs}
        return number.model_copy(update=own)
    try:
        words = words_of(number.id)
    except KeyError:
        words = NumberWords(number.id, "this version has no number of this id")
    return number.model_copy(update={"name": words.name, "formula": words.formula, "needs": ()})


def _packet_of(run: RunDirectory) -> Evidence | None:
    if layout.EVIDENCE not in run.files:
        return None
    parsed = read_json(run.files, layout.EVIDENCE, Ledger(), run.limits)
    if parsed.usable and shape_of("evidence").fits(parsed.value):
        try:
            return Evidence.model_validate(parsed.value)
        except ValidationError:
            pass
    raise UnreadableError(
        "evidence.json is not the evidence of a packet of this version",
        where=f"{run.name}: {layout.EVIDENCE}",
        mend="Build the packet again: `molforge-report build RUN`.",
    )
