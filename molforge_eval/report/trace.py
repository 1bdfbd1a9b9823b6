"""Follow a number of a packet back to its rows: formula, lines, hashes, and the same number computed once more.

The number comes from `evidence.json` where the run has one, and from the records where it has none. Either way the
records are read again, and what they give now is set beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import Field

from molforge_env.errors import UsageError
from molforge_env.frozen import FrozenModel
from molforge_eval import layout
from molforge_eval.catalogue import printable, seen
from molforge_eval.records.fields import Count, Sha256
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.number_book import Number, NumberId
from molforge_eval.report.number_rows import TABLES, NumberRows, Row
from molforge_eval.report.number_rules import rule_of
from molforge_eval.report.recount import is_near
from molforge_eval.report.trace_checks import OF_CHECKS, OnEpisodes, count_again, why_not_counted
from molforge_eval.report.trace_files import UNSOUND, FileHashes, TracedFile
from molforge_eval.report.trace_points import CurvePoint, find_point, is_address
from molforge_eval.report.trace_subject import Subject

TracedId = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(\.[A-Za-z0-9_:-]+)+(@[0-9]+)?$", max_length=220)]
Standing = Literal["equal", "differs", "not recomputed"]
SHOWN_ROWS = 10
_LONGEST_ID = 120
LONGEST_VALUE = 60
_DEEPEST = 6
_NEAREST = 3
_MARKS = frozenset("*?[")
WORDS_FILE = "report_templates/number_words.json"
RULES_FILE = "molforge_eval/data/number_rules.toml"


class TracedRow(FrozenModel):
    """One value that a number is made from."""

    file: str
    line: Count | None
    """Line of the file, from 1; `None` where it could not be told."""
    pointer: str
    """What is read there: JSON pointer in the file, or in the line of a log; empty for the whole line."""
    value: str
    """What stands there, cut to a readable length."""


class NeededNumber(FrozenModel):
    """A number that another is made from."""

    id: NumberId
    text: str
    needs: tuple[NeededNumber, ...]


class TracedNumber(FrozenModel):
    """A number, or a point of a curve, followed to its rows."""

    id: TracedId
    """The id of a number, or the address of a point."""
    name: str
    value: float | int | None
    text: str
    """As printed."""
    reason: str | None
    """Why the value is `None`."""
    formula: str
    formula_file: str
    """Where the words of the formula stand."""
    computed_by: str | None
    """The function that computes it, as `module:name`."""
    again: float | int | None
    """What the records give now."""
    standing: Standing
    standing_reason: str
    needs: tuple[NeededNumber, ...]
    row_count: Count
    """Rows of its own, or, when it has none, of the numbers that it needs; `rows` may be the first of them only."""
    rows: tuple[TracedRow, ...]
    files: tuple[TracedFile, ...]


class Trace(FrozenModel):
    """The answer of `molforge-report trace`."""

    trace_version: Literal[1]
    run: str
    run_format: Literal[0, 1]
    has_packet: bool
    """The numbers come from `evidence.json`; otherwise they were computed from the records."""
    root_sha256: Sha256 | None
    """As sealed."""
    numbers: tuple[TracedNumber, ...]

    def is_sound(self) -> bool:
        """Tell whether every number is what its records give, and every file what was sealed."""
        return all(
            number.standing != "differs" and all(file.standing not in UNSOUND for file in number.files)
            for number in self.numbers
        )


Asked = Number | CurvePoint


def choose(subject: Subject, asked: Sequence[str]) -> tuple[Asked, ...]:
    """List the numbers that ids and patterns name, and the points of addresses, each once; all numbers without any.

    Raises:
        UsageError: A name is no number and no point of this run, or a pattern fits none.
    """
    known = subject.evidence.by_id
    chosen: dict[str, Asked] = {}
    for name in asked or ("*",):
        if is_address(name):
            point = find_point(subject.evidence, name)
            chosen[point.id] = point
            continue
        found = [known[name]] if name in known else [n for n in known.values() if fnmatchcase(n.id, name)]
        if not found:
            raise _unknown(name, tuple(known))
        chosen |= {number.id: number for number in found}
    return tuple(chosen.values())


def is_pattern(name: str) -> bool:
    """Tell whether a name is a pattern of ids."""
    return not _MARKS.isdisjoint(name)


def trace_numbers(
    subject: Subject,
    asked: Sequence[Asked],
    *,
    shown: int | None = SHOWN_ROWS,
    on_episodes: OnEpisodes | None = None,
) -> Trace:
    """Follow numbers to their rows.

    Args:
        subject: The run.
        asked: Numbers of its evidence and points of its curves. For a number that a check has counted the run is
            checked, and played again where it was for the packet.
        shown: Rows that are listed of each; all when `None`.
        on_episodes: Called with episodes played again and episodes in all.
    """
    run = subject.run
    again = dict(subject.again.by_id)
    if any(one.id.startswith(OF_CHECKS) for one in asked):
        again |= count_again(subject, on_episodes)
    rows = NumberRows(run, subject.again)
    hashes = FileHashes(subject)
    return Trace(
        trace_version=1,
        run=printable(run.name),
        run_format=run.format_version,
        has_packet=subject.has_packet,
        root_sha256=None if run.checksums is None else run.checksums.root_sha256,
        numbers=tuple(
            _trace_point(subject, one, rows, hashes, shown)
            if isinstance(one, CurvePoint)
            else _trace(subject, one, again.get(one.id), rows, hashes, shown)
            for one in asked
        ),
    )


def _trace(
    subject: Subject,
    number: Number,
    again: Number | None,
    rows: NumberRows,
    hashes: FileHashes,
    shown: int | None,
) -> TracedNumber:
    own, below = rows.of(number), _rows_below(subject, number, rows)
    listed = own or below
    rule = rule_of(number.id)
    standing, reason = _standing(subject, number, again)
    counts = dict.fromkeys((source.file for source in number.sources if source.file not in TABLES), 0)
    for row in (*own, *below):
        counts[row.file] = counts.get(row.file, 0) + 1
    return TracedNumber(
        id=number.id,
        name=number.name,
        value=number.value,
        text=number.text,
        reason=number.reason,
        formula=number.formula,
        formula_file=WORDS_FILE,
        computed_by=None if rule is None else rule.by,
        again=None if again is None else again.value,
        standing=standing,
        standing_reason=reason,
        needs=_needed(subject.evidence, number, _DEEPEST),
        row_count=len(listed),
        rows=tuple(_traced(row) for row in rows.located(listed if shown is None else listed[:shown])),
        files=tuple(hashes.file(path, count) for path, count in counts.items()),
    )


def _trace_point(
    subject: Subject, asked: CurvePoint, rows: NumberRows, hashes: FileHashes, shown: int | None
) -> TracedNumber:
    found = asked.rows(rows)
    counts = Counter(row.file for row in found)
    standing, reason, again = _standing_of_point(subject, asked)
    return TracedNumber(
        id=asked.id,
        name=asked.name,
        value=asked.point.value,
        text=asked.text,
        reason="the logged number was not finite" if asked.point.value is None else None,
        formula=asked.rule.formula,
        formula_file=RULES_FILE,
        computed_by=asked.rule.by,
        again=again,
        standing=standing,
        standing_reason=reason,
        needs=(),
        row_count=len(found),
        rows=tuple(_traced(row) for row in rows.located(found if shown is None else found[:shown])),
        files=tuple(hashes.file(path, count) for path, count in counts.items()),
    )


def _standing_of_point(subject: Subject, asked: CurvePoint) -> tuple[Standing, str, float | None]:
    log = layout.TRAINER_LOG if asked.rule.take == "row" else layout.ROLLOUTS
    if _is_left_out(subject, log):
        return "not recomputed", f"the packet does not carry {log}; trace the run itself", None
    try:
        again = find_point(subject.again, asked.id).point.value
    except UsageError:
        return "differs", "the records give no such point", None
    if not is_near(asked.point.value, again):
        return "differs", f"the records give {seen(again)}", again
    return "equal", "the records give the same", again


def _rows_below(subject: Subject, number: Number, rows: NumberRows) -> list[Row]:
    """List the rows of the numbers that a number needs, each row and each number once."""
    found: dict[tuple[str, int | None, str], Row] = {}
    waiting, met = list(number.needs), set(number.needs)
    while waiting:
        needed = subject.evidence.by_id.get(waiting.pop())
        if needed is None:
            continue
        found |= {(row.file, row.line, row.pointer): row for row in rows.of(needed)}
        fresh = [other for other in needed.needs if other not in met]
        met.update(fresh)
        waiting += fresh
    own = {(row.file, row.line, row.pointer) for row in rows.of(number)}
    return [row for key, row in found.items() if key not in own]


def _needed(evidence: Evidence, number: Number, depth: int) -> tuple[NeededNumber, ...]:
    if not depth:
        return ()
    found = [evidence.by_id[other] for other in number.needs if other in evidence.by_id]
    return tuple(
        NeededNumber(id=needed.id, text=needed.text, needs=_needed(evidence, needed, depth - 1)) for needed in found
    )


def _standing(subject: Subject, number: Number, again: Number | None) -> tuple[Standing, str]:
    files = [source.file for source in number.sources if source.file in layout.LOGS]
    gone = [file for file in files if _is_left_out(subject, file)]
    if gone:
        return "not recomputed", f"the packet does not carry {gone[0]}; trace the run itself"
    barred = why_not_counted(subject, number.id)
    if barred is not None:
        return "not recomputed", barred
    if again is None:
        return "differs", "the records give no such number"
    if not is_near(number.value, again.value):
        return "differs", f"the records give {seen(again.value)}"
    if number.value == again.value and number.text != again.text:
        return "differs", f"the records give the same value, printed as {seen(again.text)}"
    if not subject.has_packet:
        return "equal", "the run has no evidence.json: the number was computed from the records"
    return "equal", "the records give the same"


def _is_left_out(subject: Subject, path: str) -> bool:
    return path not in subject.run.files and subject.run.may_lack(path)


def _traced(row: Row) -> TracedRow:
    return TracedRow(file=row.file, line=row.line, pointer=row.pointer, value=_shown_value(row.value))


def _shown_value(value: Any) -> str:
    if isinstance(value, Mapping | list | tuple):
        return f"{len(value)} items"
    text = printable(str(value))
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _unknown(name: str, known: Sequence[str]) -> UsageError:
    shown = printable(name[:_LONGEST_ID]) + ("…" if len(name) > _LONGEST_ID else "")
    if is_pattern(name):
        return UsageError(
            f"no number of this run fits the pattern {shown!r}",
            where="ID",
            mend="List them all with `molforge-report trace RUN`.",
        )
    family = f"{name.partition('.')[0]}."
    near = get_close_matches(name[:_LONGEST_ID], known, n=_NEAREST, cutoff=0.5)
    near = near or [number_id for number_id in known if number_id.startswith(family)][:_NEAREST]
    mend = f"Near it: {', '.join(near)}." if near else "List them with `molforge-report trace RUN`."
    return UsageError(f"this run has no number {shown!r}", where="ID", mend=mend)
