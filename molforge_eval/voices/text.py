"""Findings for a person: grouped by code, three lines each, the rest of a group counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from molforge_eval.catalogue import printable
from molforge_eval.findings import Finding
from molforge_eval.validation_result import ValidationResult
from molforge_eval.voices.judged_run import SHOWN_A_CODE, count_text, only_text, waiver_lines

_SEVERITIES = ("error", "warning", "info")


def render(result: ValidationResult, *, show_all: bool = False) -> str:
    """Spell a result.

    Args:
        result: What validation or replay answered.
        show_all: Show every finding instead of the first three of a code.

    Returns:
        Lines without colour; plain ASCII apart from what the findings quote.
    """
    groups = (*_groups(result, show_all=show_all), *_waived(result, show_all=show_all))
    return "\n".join([*_head(result), *groups, *_tail(result)]) + "\n"


def _head(result: ValidationResult) -> Iterator[str]:
    yield f"{printable(result.run)}  {printable(result.run_id or 'no run id')}"
    # That nothing differed is an answer; that there are no plots is none.
    told = {name: count for name, count in result.counts.items() if count or name == "episodes_differing"}
    looked_at = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in told.items())
    yield f"  looked at: {looked_at or 'nothing'}"
    if result.root_sha256 is not None:
        yield f"  root hash: {result.root_sha256}"


def _groups(result: ValidationResult, *, show_all: bool) -> Iterator[str]:
    ordered = sorted(result.findings, key=lambda item: (_SEVERITIES.index(item.severity), item.code))
    for (severity, code), group in groupby(ordered, key=lambda item: (item.severity, item.code)):
        findings = list(group)
        unseen = result.omitted.get(code, 0)
        yield ""
        yield f"{severity} {code} ({len(findings) + unseen})"
        yield from _group(findings, unseen, show_all=show_all)


def _group(findings: Sequence[Finding], unseen: int, *, show_all: bool) -> Iterator[str]:
    shown = findings if show_all else findings[:SHOWN_A_CODE]
    for finding in shown:
        yield f"  {finding.what}"
        yield f"    where: {finding.where.text()}"
    hidden = len(findings) - len(shown)
    if hidden:
        yield f"  {hidden + unseen} more like this (--all)"
    elif unseen:
        yield f"  {unseen} more like this were counted and not kept"
    yield f"    mend:  {findings[0].mend}"


def _waived(result: ValidationResult, *, show_all: bool) -> Iterator[str]:
    if result.waivers:
        yield ""
        yield from waiver_lines(result)
    for entry in result.waived if show_all else result.waived[:SHOWN_A_CODE]:
        yield f"  {entry.finding.code}: {entry.finding.what}"
        yield f"    where: {entry.finding.where.text()}"
    hidden = 0 if show_all else len(result.waived) - SHOWN_A_CODE
    if hidden > 0:
        yield f"  {hidden} more waived findings (--all)"


def _tail(result: ValidationResult) -> Iterator[str]:
    yield ""
    yield f"level {result.level or 'none'}: {result.level_reason}"
    yield f"findings: {count_text(result)}"
    if result.only:
        yield only_text(result)
