"""Findings as SARIF 2.1.0, for code scanning and editors: one run of the tool, a result a finding.

A finding keeps its fingerprint when lines are added above it and when findings of other codes come or go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from molforge_eval.canonical import digest, file_bytes
from molforge_eval.catalogue import CodeEntry, entry_of, printable
from molforge_eval.findings import Finding
from molforge_eval.voices.judged_run import JudgedRun, place_text, waiver_lines
from molforge_eval.waivers import WaivedFinding

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT = "molforgeFinding/v1"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def render(runs: Sequence[JudgedRun]) -> str:
    """Spell runs as one SARIF log; all paths are relative to the checkout."""
    found = sorted({finding.code for run in runs for finding, _ in _told(run)})
    index = {code: number for number, code in enumerate(found)}
    driver = {"name": "molforge-eval", "rules": [_rule(entry_of(code)) for code in found]}
    unread = [_notification(run) for run in runs if run.result is None]
    invocation = {"executionSuccessful": not unread, "toolExecutionNotifications": unread}
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "results": [result for run in runs for result in _results(run, index)],
        "properties": {"evidence": [_evidence(run) for run in runs]},
    }
    return file_bytes({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}).decode()


def uri_of(path: str) -> str:
    """Spell a relative path as a relative URI.

    >>> uri_of("runs/a b/100%:c.json")
    'runs/a%20b/100%25%3Ac.json'
    """
    return quote(path, safe="/")


def _plain(text: str) -> str:
    # A message may hold links, `[words](address)`; a stranger's must not.
    return printable(text).replace("](", "\\](")


def _rule(entry: CodeEntry) -> dict[str, Any]:
    return {
        "id": entry.code,
        "shortDescription": {"text": entry.meaning},
        "fullDescription": {"text": entry.reason},
        "help": {"text": f"{entry.mend}\n\nExample: {entry.example}"},
        "defaultConfiguration": {"level": _LEVELS[entry.severity]},
        "properties": {"rule": entry.rule, "deniesLevel": entry.level},
    }


def _results(run: JudgedRun, index: dict[str, int]) -> Iterator[dict[str, Any]]:
    met: Counter[str] = Counter()
    for finding, waived in _told(run):
        key = _identity(run, finding)
        met[key] += 1
        result = {
            "ruleId": finding.code,
            "ruleIndex": index[finding.code],
            "level": _LEVELS[finding.severity],
            "message": {"text": f"{_plain(finding.what)}\n{_plain(finding.mend)}"},
            "locations": [_location(run, finding)],
            "partialFingerprints": {FINGERPRINT: f"{key}:{met[key]}"},
        }
        if waived is not None:
            reason = f"{_plain(waived.reason)} (until {waived.until})"
            result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": reason}]
        yield result


def _told(run: JudgedRun) -> Iterator[tuple[Finding, WaivedFinding | None]]:
    """List the findings of a run with what waives them; those that count come first."""
    if run.result is not None:
        yield from ((finding, None) for finding in run.result.findings)
        yield from ((entry.finding, entry) for entry in run.result.waived)


def _identity(run: JudgedRun, finding: Finding) -> str:
    """Hash what a finding is about: neither its line nor the value seen, which an edit elsewhere may move."""
    place = finding.where
    about = [finding.code, run.name, place.file, place.pointer, place.episode, place.step]
    return digest([None if part is None else printable(str(part)) for part in about])


def _location(run: JudgedRun, finding: Finding) -> dict[str, Any]:
    file = run.file_of(finding.where)
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri_of(file or run.name), "uriBaseId": "%SRCROOT%"}}
    if finding.where.line is not None and run.is_folder and file is not None:
        physical["region"] = {"startLine": finding.where.line}
    return {"physicalLocation": physical, "logicalLocations": [{"fullyQualifiedName": place_text(finding)}]}


def _notification(run: JudgedRun) -> dict[str, Any]:
    what = "not read" if run.error is None else run.error.what
    physical = {"artifactLocation": {"uri": uri_of(run.name), "uriBaseId": "%SRCROOT%"}}
    return {"level": "error", "message": {"text": _plain(what)}, "locations": [{"physicalLocation": physical}]}


def _evidence(run: JudgedRun) -> dict[str, Any]:
    told: dict[str, Any] = {"run": run.name, "isReadable": run.result is not None, "fails": run.fails}
    if run.result is not None:
        told |= {"level": run.result.level, "levelReason": printable(run.result.level_reason)}
        told |= {"omitted": dict(run.result.omitted)}
        if run.result.only:
            told |= {"only": list(run.result.only), "leftOut": run.result.left_out}
        if run.result.waivers:
            told |= {"waivers": waiver_lines(run.result), "waivedOmitted": dict(run.result.waived_omitted)}
    return told
