"""What a packet says, computed again from the records: the first thing that a page would be tampered in.

Compared is what follows from the records alone. The level, the findings and the claims follow from a check, and a check
is made again anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from molforge_eval import layout
from molforge_eval.canonical import JsonValue, plain
from molforge_eval.catalogue import seen
from molforge_eval.findings import Finding
from molforge_eval.ladder import ladder, ladder_of
from molforge_eval.report.assembly import Checked, assemble_evidence
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.old_assembly import assemble_old_evidence
from molforge_eval.run_directory import RunDirectory
from molforge_eval.validation_result import ValidationResult
from molforge_eval.verdict import decide

_OF_RECORDS = (
    "verdict", "tasks", "seeds", "seed_table", "metrics", "transcripts", "settings", "packages", "sentinel", "curves",
    "resumes", "phases", "exploration", "paid", "shift", "surroundings", "charts",
)  # fmt: skip
_OF_LOGS = frozenset({"sentinel", "curves", "resumes", "phases", "exploration", "paid", "charts"})
_OF_CHECKS = ("check.", "findings.", "artifacts.")
"""Numbers that say what was looked at; their ids begin so."""
_OF_EVALUATIONS = (
    "score.", "seeds.", "seed.", "sampled.", "metric.", "metrics.", "transcript.", "explore.before_", "explore.after_",
    "conduct.before.", "conduct.after.", "mix.",
)  # fmt: skip
_WORDS = ("name", "formula", "needs", "reason")
"""What is said of a number beside its value."""
_TITLE_AND_ROOT = ("title", "root_sha256")
_NEARLY = 1e-9
_WITHHELD = "withheld"


class Difference(NamedTuple):
    """One place in which the evidence is not what the records give."""

    pointer: str
    what: str


def recount(packet: Evidence, run: RunDirectory) -> Iterator[Difference]:
    """Compute the evidence of a run again and compare.

    Args:
        packet: The evidence as it stands in the packet.
        run: The run. Without its logs only what the evaluations give is compared.
    """
    again = assemble_again(run, packet.findings)
    # An older run may have no log because nothing was logged; of a packet it cannot be told.
    may_have_none = run.format_version == 0 and not run.is_packet
    has_logs = may_have_none or all(path in run.files for path in layout.LOGS)
    left, right = _comparable(packet), _comparable(again)
    yield from _compare_numbers(left["numbers"], right["numbers"], _is_asked(has_logs=has_logs))
    for key in _OF_RECORDS:
        if has_logs or key not in _OF_LOGS:
            yield from _compare(left[key], right[key], f"/{key}", packet)
    if run.manifest is not None:
        yield from _compare(left["identity"], right["identity"], "/identity", packet)
    yield from _compare_artifacts(packet, run)


def assemble_again(run: RunDirectory, findings: tuple[Finding, ...]) -> Evidence:
    """Compute the evidence of a run from its records alone.

    Args:
        run: The run.
        findings: What a check found; those of severity error bar every difference.
    """
    # The packet's own findings: errors bar a difference, and whether they are true is asked by a check of its own.
    nothing = ValidationResult(
        run=run.name, run_id=None, run_format=run.format_version, level=None, level_reason="", root_sha256=None,
        counts={}, findings=findings, omitted={},
    )  # fmt: skip
    rungs = ladder() if run.plan is None else ladder_of(run.plan)
    verdict = None if run.plan is None else decide(run.before, run.after, run.plan, findings, ladder=rungs)
    assemble = assemble_old_evidence if run.format_version == 0 else assemble_evidence
    return assemble(
        Checked(run=run, files=(), root_sha256=None, result=nothing, replayed=False, verdict=verdict, ladder=rungs)
    )


def _comparable(evidence: Evidence) -> dict[str, Any]:
    value: dict[str, Any] = plain(evidence)
    for key in _TITLE_AND_ROOT:
        value["identity"].pop(key)
    return value


def _is_asked(*, has_logs: bool) -> Any:
    if has_logs:
        return lambda number_id: not number_id.startswith(_OF_CHECKS)
    return lambda number_id: number_id.startswith(_OF_EVALUATIONS)


def _compare_numbers(packet: list[Any], again: list[Any], is_asked: Any) -> Iterator[Difference]:
    known = {number["id"]: number for number in again}
    for place, number in enumerate(packet):
        number_id = number["id"]
        if not is_asked(number_id):
            continue
        wanted = known.pop(number_id, None)
        pointer = f"/numbers/{place}/value"
        if wanted is None:
            yield Difference(pointer, f"number {number_id} is {number['text']!r}, the records give no such number")
        elif not is_near(number["value"], wanted["value"]):
            yield Difference(
                pointer, f"number {number_id} is {seen(number['value'])}, the records give {seen(wanted['value'])}"
            )
        elif number["value"] == wanted["value"] and number["text"] != wanted["text"]:
            what = f"number {number_id} is printed as {seen(number['text'])}, the records give {seen(wanted['text'])}"
            yield Difference(f"/numbers/{place}/text", what)
        else:
            yield from _compare_words(number, wanted, f"/numbers/{place}")
    for number_id in known:
        if is_asked(number_id):
            yield Difference("/numbers", f"number {number_id} is missing")


def _compare_words(number: Any, wanted: Any, pointer: str) -> Iterator[Difference]:
    """Hold what is said of a number to what this version says of it: its name, how it is made, where its rows stand."""
    for key in _WORDS:
        if number[key] != wanted[key]:
            what = f"the {key} of number {number['id']} is {seen(number[key])}, the records give {seen(wanted[key])}"
            yield Difference(f"{pointer}/{key}", what)
    places, own = ([(source["file"], source["part"]) for source in one["sources"]] for one in (number, wanted))
    if places != own:
        what = f"number {number['id']} is said to come from {seen(places)}, the records give {seen(own)}"
        yield Difference(f"{pointer}/sources", what)


def _compare(packet: JsonValue, again: JsonValue, pointer: str, evidence: Evidence) -> Iterator[Difference]:
    if pointer in ("/verdict/outcome", "/verdict/reasons") and evidence.verdict.outcome == _WITHHELD:
        # A verdict is withheld for findings, and those are looked for anew.
        return
    if isinstance(packet, Mapping) and isinstance(again, Mapping) and packet.keys() == again.keys():
        for key, item in packet.items():
            yield from _compare(item, again[key], f"{pointer}/{key}", evidence)
    elif isinstance(packet, list) and isinstance(again, list) and len(packet) == len(again):
        for place, (left, right) in enumerate(zip(packet, again, strict=True)):
            yield from _compare(left, right, f"{pointer}/{place}", evidence)
    elif not is_near(packet, again):
        yield Difference(pointer, f"the packet says {seen(packet)}, the records give {seen(again)}")


def _compare_artifacts(packet: Evidence, run: RunDirectory) -> Iterator[Difference]:
    sealed = {} if run.checksums is None else {entry.path: entry.sha256 for entry in run.checksums.files}
    for place, artifact in enumerate(packet.artifacts):
        wanted = sealed.get(artifact.path)
        if wanted is not None and wanted != artifact.sha256:
            what = f"the packet lists {artifact.path} with another SHA-256 than checksums.json"
            yield Difference(f"/artifacts/{place}/sha256", what)


def is_near(left: Any, right: Any) -> bool:
    """Tell whether two values are equal, numbers up to what another version of a library may change."""
    is_numeric = isinstance(left, int | float) and isinstance(right, int | float)
    if not is_numeric or isinstance(left, bool) or isinstance(right, bool):
        return bool(left == right)
    return bool(abs(left - right) <= _NEARLY * max(1.0, abs(left), abs(right)))
