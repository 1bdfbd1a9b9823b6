"""Whether a packet was built from the run: its numbers computed again, its root hash compared.

A packet beside a run is no record: it can be built again at any time. A packet that is itself the input has to speak of
what it carries, on its first page too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from molforge_eval import layout
from molforge_eval.catalogue import finding, printable, seen, short
from molforge_eval.findings import Finding
from molforge_eval.ledger import Ledger
from molforge_eval.record_files import read_json
from molforge_eval.run_directory import RunDirectory
from molforge_eval.shape import shape_of

_SHOWN_HASH = 8
_SHOWN_FILES = 3
_HEADLINE = ("score.mean.before", "score.mean.after")


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compare `evidence.json`, when there is one, with its schema, the seal of the run, and the records."""
    if run.is_packet:
        yield from _check_carried(run)
    yield from _check_page(run)
    evidence = yield from _read_evidence(run)
    if evidence is None:
        return
    path = layout.EVIDENCE
    root = None if run.checksums is None else run.checksums.root_sha256
    built_from = evidence["identity"]["root_sha256"]
    if root is not None and built_from != root:
        names = "a run without a seal" if built_from is None else f"root {short(built_from)}"
        what = f"the packet was built from {names}, the run is sealed as {short(root)}"
        code = "PACKET_FOREIGN" if run.is_packet else "PACKET_OUTDATED"
        yield finding(code, what, file=path, pointer="/identity/root_sha256")
        if not run.is_packet:
            return
    yield from _check_numbers(run, evidence)
    yield from _check_first_page(run, evidence)


def _check_page(run: RunDirectory) -> Iterator[Finding]:
    """The page in the run carries the root hash of the run."""
    path, root = layout.PACKET_HTML, None if run.checksums is None else run.checksums.root_sha256
    if root is None or path not in run.files:
        return
    try:
        data = run.files.read(path, at_most=run.limits.file_bytes)
    except OSError as error:
        yield finding("FILE_UNREADABLE", f"the file cannot be read: {error.strerror or error}", file=path)
        return
    if data is None:
        what = f"the file has {run.files.sizes[path]} bytes, the limit is {run.limits.file_bytes}"
        yield finding("FILE_TOO_LARGE", what, file=path)
    elif root.encode() not in data:
        what = f"the page does not carry {short(root)}, the root hash of the run"
        yield finding("PACKET_OUTDATED", what, file=path)


def _read_evidence(run: RunDirectory) -> Any:
    path = layout.EVIDENCE
    if path not in run.files:
        if run.is_packet:
            yield finding("PACKET_UNFIT", "no evidence.json is attached to the packet", file=path)
        return None
    ledger = Ledger(run.limits.findings_a_code)
    parsed = read_json(run.files, path, ledger, run.limits)
    faults = [item.what for item in ledger.findings()]
    if parsed.usable and not faults:
        shape = shape_of("evidence")
        if shape.fits(parsed.value):
            return parsed.value
        faults = [f"{misfit.pointer} {misfit.what}" for misfit in shape.explain(parsed.value)]
    if faults:
        what = f"the evidence of the packet is not that of this version: {faults[0].strip()}"
        yield finding("PACKET_UNFIT", what, file=path)
    return None


def _check_numbers(run: RunDirectory, value: Any) -> Iterator[Finding]:
    from molforge_eval.report.evidence import Evidence
    from molforge_eval.report.recount import recount

    if any(path in run.files and record is None for path, record in _sources(run)):
        # It is named where it cannot be read, and every number of it would be missing here.
        return
    for difference in recount(Evidence.model_validate(value), run):
        yield finding("PACKET_NUMBER_DIFFERS", difference.what, file=layout.EVIDENCE, pointer=difference.pointer)


def _sources(run: RunDirectory) -> tuple[tuple[str, object], ...]:
    """Pair the records that a packet is computed from with what was read of them."""
    if run.old is not None:
        old = run.old
        return (layout.MANIFEST, old.manifest), (layout.BEFORE, old.before), (layout.AFTER, old.after)
    heads = ((layout.MANIFEST, run.manifest), (layout.PLAN, run.plan))
    return *heads, (layout.BEFORE, run.before), (layout.AFTER, run.after)


def _check_carried(run: RunDirectory) -> Iterator[Finding]:
    sealed = () if run.checksums is None else tuple(entry.path for entry in run.checksums.files)
    absent = [path for path in sealed if path not in run.files and run.may_lack(path)]
    logs = [path for path in absent if path in layout.LOGS]
    others = [path for path in absent if path not in layout.LOGS]
    if others:
        more = f" and {len(others) - _SHOWN_FILES} more" if len(others) > _SHOWN_FILES else ""
        what = f"a packet carries no {', no '.join(others[:_SHOWN_FILES])}{more}; nothing is said of them"
        yield finding("PACKET_CARRIES_LESS", what, file=layout.CHECKSUMS, pointer="/files")
    if logs:
        what = f"the packet does not carry {' and '.join(logs)}; nothing is said of training"
        yield finding("PACKET_LOG_ABSENT", what, file=layout.CHECKSUMS, pointer="/files")


def _check_first_page(run: RunDirectory, evidence: Any) -> Iterator[Finding]:
    """Look for the root hash among the words of the first page, and hold the words to those of the evidence."""
    page = run.first_page
    if page is None:
        return
    yield from (
        finding("PACKET_PAGE_DIFFERS", f"the first page holds {seen(kind)[1:-1]}, which no page of a packet has")
        for kind in page.strange
    )
    if page.words is None:
        yield finding("PACKET_PAGE_DIFFERS", "the words of the first page cannot be read")
        return
    root = None if run.checksums is None else run.checksums.root_sha256
    if root is not None and root[:_SHOWN_HASH] not in page.words.casefold():
        what = f"the first page does not show {short(root)}, the root hash of what is attached"
        yield finding("PACKET_FOREIGN", what)
    if page.creator == layout.PACKET_CREATOR:
        yield from _compare_words(run, page.words, evidence)
    else:
        yield from _look_for_headline(page.words.casefold(), evidence)
        what = f"the packet was made by {seen(page.creator)}, this is {layout.PACKET_CREATOR}"
        yield finding("PACKET_PAGE_UNREAD", f"{what}: the words of its first page may differ")


def _compare_words(run: RunDirectory, words: str, evidence: Any) -> Iterator[Finding]:
    from molforge_eval.report.evidence import Evidence
    from molforge_eval.report.first_page import compare_words

    given = Evidence.model_validate(evidence)
    left_out = any(entry.path in layout.LOGS and entry.path not in run.files for entry in given.artifacts)
    for what in compare_words(words, given, logs_left_out=left_out):
        yield finding("PACKET_PAGE_DIFFERS", printable(what))


def _look_for_headline(page: str, evidence: Any) -> Iterator[Finding]:
    for number in evidence["numbers"]:
        if number["id"] in _HEADLINE and number["value"] is not None and number["text"].casefold() not in page:
            what = f"the first page does not show {seen(number['text'])}, which is {number['id']} of the evidence"
            yield finding("PACKET_FOREIGN", what, file=layout.EVIDENCE)
