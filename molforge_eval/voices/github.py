"""Findings as workflow commands, which GitHub shows as annotations on the files of a pull request.

Every line starts with a command of ours, and a stranger's text is escaped inside it: it can end no line, so it can
start no command.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from molforge_eval.catalogue import printable
from molforge_eval.findings import Finding
from molforge_eval.voices.judged_run import (
    SHOWN_A_CODE,
    JudgedRun,
    count_text,
    groups_of,
    level_text,
    only_text,
    place_text,
    waiver_lines,
)

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}
_IN_MESSAGE = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def render(runs: Sequence[JudgedRun], *, show_all: bool = False) -> str:
    """Spell runs as workflow commands, the gravest findings first, because GitHub shows the first few of a step.

    Args:
        runs: What was looked at.
        show_all: Annotate every finding instead of the first three of a code.
    """
    return "".join(f"{line}\n" for run in runs for line in _lines(run, show_all=show_all))


def command(name: str, message: str, **properties: str | int | None) -> str:
    """Spell one workflow command.

    >>> command("error", "100 %", file="a,b.json", line=3)
    '::error file=a%2Cb.json,line=3::100 %25'
    """
    given = ((key, str(value)) for key, value in properties.items() if value is not None)
    words = ",".join(f"{key}={value.translate(_IN_PROPERTY)}" for key, value in given)
    return f"::{name} {words}::{message.translate(_IN_MESSAGE)}"


def _lines(run: JudgedRun, *, show_all: bool) -> Iterator[str]:
    if run.result is None:
        what, mend = ("not read", "") if run.error is None else (run.error.what, f"\nmend: {run.error.mend}")
        yield command("error", f"{printable(what)}{mend}", title=f"unreadable: {run.name}")
        return
    for group in groups_of(run.result):
        shown = group if show_all else group[:SHOWN_A_CODE]
        rest = len(group) - len(shown) + run.result.omitted.get(group[0].code, 0)
        for finding in shown:
            yield _annotation(run, finding, rest=rest if finding is shown[-1] else 0)
    told = [level_text(run.result), f"findings: {count_text(run.result)}"]
    if run.shortfall is not None:
        told[0] = run.shortfall
    if run.result.only:
        told.append(only_text(run.result))
    told += waiver_lines(run.result)
    yield command("error" if run.fails else "notice", "\n".join(told), title=run.name)


def _annotation(run: JudgedRun, finding: Finding, *, rest: int) -> str:
    file = run.file_of(finding.where)
    lines = [printable(finding.what), f"where: {place_text(finding)}", f"mend: {printable(finding.mend)}"]
    if rest:
        lines.append(f"more of this code: {rest}")
    return command(
        _COMMANDS[finding.severity],
        "\n".join(lines),
        file=file,
        line=finding.where.line if file is not None and run.is_folder else None,
        title=f"{finding.code} in {run.name}",
    )
