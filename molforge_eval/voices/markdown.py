"""Findings as Markdown, for the summary page of a CI job: one row a run, then one row a code.

A stranger's text stands inside `<code>` with every punctuation mark as a character reference, so that it is no table
cell, link, mention, picture or HTML.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence

from molforge_eval.catalogue import printable
from molforge_eval.voices.judged_run import JudgedRun, groups_of, only_text, place_text, waiver_lines

LONGEST_CELL = 300
"""Characters of a cell; a job's summary page has a limit of one megabyte."""
_REFERENCES = {ord(mark): f"&#{ord(mark)};" for mark in string.punctuation if mark not in "-,"}


def render(runs: Sequence[JudgedRun]) -> str:
    """Spell runs as one Markdown section."""
    return (
        "\n".join(["## MolForge Evidence", "", *_overview(runs), *(line for run in runs for line in _run(run))]) + "\n"
    )


def literal(text: str) -> str:
    """Spell a text that a reader sees as it is, whatever Markdown would make of it.

    >>> literal("a|b")
    '<code>a&#124;b</code>'
    """
    shown = printable(text)
    if len(shown) > LONGEST_CELL:
        shown = f"{shown[:LONGEST_CELL]}…"
    return f"<code>{shown.translate(_REFERENCES)}</code>"


def _overview(runs: Sequence[JudgedRun]) -> Iterator[str]:
    yield "| run | result | level | errors | warnings | notes | waived |"
    yield "|---|---|---|---:|---:|---:|---:|"
    for run in runs:
        result = "fails" if run.fails else "passes"
        if run.result is None:
            yield f"| {literal(run.path)} | unreadable | none | | | | |"
            continue
        counts = [
            sum(finding.severity == severity for finding in run.result.findings)
            for severity in ("error", "warning", "info")
        ]
        counts.append(len(run.result.waived) + sum(run.result.waived_omitted.values()))
        numbers = " | ".join(str(count) for count in counts)
        yield f"| {literal(run.path)} | {result} | {run.result.level or 'none'} | {numbers} |"


def _run(run: JudgedRun) -> Iterator[str]:
    yield from ("", f"### {literal(run.path)}", "")
    if run.result is None:
        yield "not read" if run.error is None else f"{literal(run.error.what)} {literal(run.error.mend)}"
        return
    yield f"level {run.result.level or 'none'}: {literal(run.result.level_reason)}"
    if run.shortfall is not None:
        yield from ("", f"**level {run.wanted} is required**")
    if run.result.only:
        yield from ("", only_text(run.result).replace("_", "\\_"))
    yield from (line for told in waiver_lines(run.result) for line in ("", literal(told)))
    if not run.result.findings:
        yield from ("", "no findings that count" if run.result.waived else "no findings")
        return
    yield from ("", "| severity | code | count | the first of them | where | mend |", "|---|---|---:|---|---|---|")
    for group in groups_of(run.result):
        first = group[0]
        count = len(group) + run.result.omitted.get(first.code, 0)
        cells = (literal(first.what), literal(place_text(first)), literal(first.mend))
        yield f"| {first.severity} | `{first.code}` | {count} | {' | '.join(cells)} |"
