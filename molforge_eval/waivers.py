"""Waivers: findings that a maintainer has looked at and lets pass until a day, each with the reason.

A waiver keeps a finding from failing a run. It takes nothing away: the finding is shown as waived in every voice, the
evidence level counts it as before, and the judge packet knows no waivers at all.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from molforge_env.errors import UsageError
from molforge_env.frozen import FrozenModel
from molforge_eval.catalogue import codes, printable, seen
from molforge_eval.findings import Finding
from molforge_eval.records.fields import Count

ANYWHERE = "*"
MOST_WAIVERS = 1_000
LARGEST_FILE = 2**20
MOST_DOTS = 200
"""In one line: the reader of TOML takes the square of the parts of a dotted key."""
_HEAD = "waiver"
_MEND = 'Write [[waiver]] tables with code, where ("*" is anywhere), reason and until (a date such as 2027-01-31).'


class Waiver(FrozenModel):
    """One entry of a waivers file."""

    code: str
    where: str = Field(min_length=1, max_length=1_000)
    """Pattern of the place: `logs/*.jsonl`, `run_manifest.json /git_commit`, `plots/a.png:3`, or `*` for anywhere."""
    reason: str = Field(min_length=1, max_length=1_000, pattern=r"\S")
    until: date
    """Last day on which it holds, in UTC."""

    def covers(self, finding: Finding) -> bool:
        """Tell whether a finding has the code and stands at the place.

        The pattern is held against each spelling of the place: the file, the file with its line, the file with its
        pointer, and the whole place as it is printed.
        """
        return finding.code == self.code and any(fnmatchcase(spelling, self.where) for spelling in _places(finding))


class WaiverUse(FrozenModel):
    """What became of a waiver for one run."""

    code: str
    where: str
    reason: str
    until: date
    state: Literal["used", "unused", "expired"]
    """`expired`: its day is over, and what it would have covered counts."""
    findings: Count
    """Findings that it covers, or would cover if it had not expired."""


class WaivedFinding(FrozenModel):
    """A finding that does not fail the run, and why."""

    finding: Finding
    reason: str
    until: date


class Waived(FrozenModel):
    """The findings of a run, parted by its waivers."""

    findings: tuple[Finding, ...]
    """Those that still count."""
    waived: tuple[WaivedFinding, ...]
    waived_omitted: dict[str, Count]
    """Findings beyond the limit that were waived anywhere, by code."""
    uses: tuple[WaiverUse, ...]


def read_waivers(file: Path, *, runs: Iterable[Path] = ()) -> tuple[Waiver, ...]:
    """Read a waivers file.

    Args:
        file: A TOML file of `[[waiver]]` tables.
        runs: The runs that are judged. The file may not stand in one: nobody waives the findings of their own run.

    Raises:
        UsageError: The file cannot be read, stands in a run, or holds something else.
    """
    target = file.resolve()
    if any(target.is_relative_to(run.resolve()) for run in runs):
        raise _wrong(file, "it stands in the run that is judged", "Keep the waivers outside the runs.")
    try:
        with file.open("rb") as handle:
            data = handle.read(LARGEST_FILE + 1)
    except OSError as error:
        raise _wrong(file, error.strerror or "it cannot be read", "Name a file that you may read.") from error
    if len(data) > LARGEST_FILE:
        raise _wrong(file, f"it is larger than {LARGEST_FILE} bytes", "Waive a kind of finding by a pattern.")
    if any(line.count(b".") > MOST_DOTS for line in data.split(b"\n")):
        raise _wrong(file, f"a line of it has more than {MOST_DOTS} dots", "Shorten the line.")
    try:
        value = tomllib.loads(data.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise _wrong(file, f"it is no TOML: {error}", _MEND) from error
    return _waivers_in(value, file)


def apply_waivers(
    findings: Sequence[Finding], omitted: dict[str, int], waivers: Sequence[Waiver], *, today: date
) -> Waived:
    """Part the findings of a run.

    Args:
        findings: All findings that were kept.
        omitted: Findings beyond the limit, by code; only a waiver for anywhere covers them, as their place is unknown.
        waivers: In the order of the file; the first that covers a finding takes it.
        today: The day in UTC.
    """
    counts = [0] * len(waivers)
    kept: list[Finding] = []
    waived: list[WaivedFinding] = []
    for finding in findings:
        taken = _first_cover(finding, waivers, counts, today)
        if taken is None:
            kept.append(finding)
        else:
            waived.append(WaivedFinding(finding=finding, reason=taken.reason, until=taken.until))
    everywhere = {waiver.code for waiver in waivers if waiver.where == ANYWHERE and today <= waiver.until}
    uses = tuple(
        WaiverUse(**waiver.model_dump(), state=_state(waiver, count, today), findings=count)
        for waiver, count in zip(waivers, counts, strict=True)
    )
    gone = {code: count for code, count in omitted.items() if code in everywhere}
    return Waived(findings=tuple(kept), waived=tuple(waived), waived_omitted=gone, uses=uses)


def _first_cover(finding: Finding, waivers: Sequence[Waiver], counts: list[int], today: date) -> Waiver | None:
    taken = None
    for index, waiver in enumerate(waivers):
        is_over = today > waiver.until
        if (taken is None or is_over) and waiver.covers(finding):
            counts[index] += 1
            taken = taken if is_over else waiver
    return taken


def _state(waiver: Waiver, count: int, today: date) -> Literal["used", "unused", "expired"]:
    if today > waiver.until:
        return "expired"
    return "used" if count else "unused"


def _places(finding: Finding) -> tuple[str, ...]:
    place = finding.where
    if place.file is None:
        return (place.text(),)
    with_line = place.file if place.line is None else f"{place.file}:{place.line}"
    with_pointer = place.file if place.pointer is None else f"{place.file} {place.pointer}"
    return place.file, with_line, with_pointer, place.text()


def _waivers_in(value: dict[str, Any], file: Path) -> tuple[Waiver, ...]:
    entries = value.get(_HEAD, [])
    unknown = sorted(set(value) - {_HEAD})
    if unknown:
        raise _wrong(file, f"key {seen(unknown[0])} is not known", _MEND)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _wrong(file, f"{_HEAD} is no list of tables", _MEND)
    if len(entries) > MOST_WAIVERS:
        raise _wrong(file, f"it holds {len(entries)} waivers, the limit is {MOST_WAIVERS}", "Waive by a pattern.")
    return tuple(_waiver(entry, number, file) for number, entry in enumerate(entries, start=1))


def _waiver(entry: dict[str, Any], number: int, file: Path) -> Waiver:
    try:
        waiver = Waiver.model_validate(entry)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        key = ".".join(str(step) for step in first["loc"])
        raise _wrong(file, f"waiver {number}: {key}: {first['msg']}", _MEND) from error
    if waiver.code not in codes():
        mend = "`molforge-eval explain` without a code lists them all."
        raise _wrong(file, f"waiver {number}: code {seen(waiver.code)} is not in the table", mend)
    return waiver


def _wrong(file: Path, what: str, mend: str) -> UsageError:
    return UsageError(f"waivers file: {printable(what)}", where=printable(str(file)), mend=mend)
