"""A run as the voices of a CI job need it: its path in the checkout, what was found, and what was asked of it.

A path or a text of a run is a stranger's: it is spelled in printable characters here, once, and each voice adds the
escapes of its own format.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NamedTuple

from molforge_env.errors import MolForgeError
from molforge_eval.catalogue import Level, printable
from molforge_eval.findings import Finding, Place
from molforge_eval.validation_result import ValidationResult
from molforge_eval.waivers import ANYWHERE, WaiverUse

SHOWN_A_CODE = 3
"""Findings of one code that a voice for people shows before it counts the rest."""
_SEVERITIES = ("error", "warning", "info")


class JudgedRun(NamedTuple):
    """One run: either a result or the error that kept it from being read."""

    path: str
    """Path relative to the working directory, with forward slashes."""
    is_folder: bool
    result: ValidationResult | None
    error: MolForgeError | None = None
    wanted: Level | None = None
    """Level that the run was required to reach."""
    strict: bool = False

    @property
    def name(self) -> str:
        """The path in printable characters."""
        return printable(self.path)

    @property
    def shortfall(self) -> str | None:
        """What to say when the run reaches less than was required."""
        if self.result is None or self.wanted is None:
            return None
        if self.result.level is not None and self.result.level >= self.wanted:
            return None
        reached = self.result.level or "none"
        return f"level {self.wanted} is required, {reached} was reached: {printable(self.result.level_reason)}"

    @property
    def fails(self) -> bool:
        """Whether the run makes the command leave with a code other than 0."""
        return self.result is None or self.result.has_errors(strict=self.strict) or self.shortfall is not None

    def fails_by(self, finding: Finding) -> bool:
        """Tell whether a finding is one that fails the run."""
        return finding.severity == "error" or (self.strict and finding.severity == "warning")

    def file_of(self, place: Place) -> str | None:
        """Find the file of the checkout that a place stands in; `None` when that is the run as a whole.

        A member of an archive is no file of the checkout, and neither is a name that leads out of the run.
        """
        if not self.is_folder:
            return self.name
        if place.file is None or place.file.startswith("/") or ".." in PurePosixPath(place.file).parts:
            return None
        return f"{self.name}/{printable(place.file)}"


def place_text(finding: Finding) -> str:
    """Spell the place of a finding in printable characters."""
    return printable(finding.where.text())


def level_text(result: ValidationResult) -> str:
    """Spell the level with its reason."""
    return f"level {result.level or 'none'}: {printable(result.level_reason)}"


def count_text(result: ValidationResult) -> str:
    """Count the findings that were kept, by severity."""
    counts = dict.fromkeys(_SEVERITIES, 0)
    for finding in result.findings:
        counts[finding.severity] += 1
    told = [f"{count} {severity}" for severity, count in counts.items() if count] or ["none"]
    waived = len(result.waived) + sum(result.waived_omitted.values())
    return ", ".join([*told, f"{waived} waived"] if waived else told)


def only_text(result: ValidationResult) -> str:
    """Say what the findings were limited to, and how many were left out."""
    return f"limited to {', '.join(result.only)}; findings of other codes that are not shown: {result.left_out}"


def waiver_lines(result: ValidationResult) -> list[str]:
    """Say what became of each waiver: one line each, in the order of their file."""
    lines = []
    for use in result.waivers:
        about = f"{use.code} at {printable(use.where)} until {use.until}: {printable(use.reason)}"
        if use.state == "expired":
            lines.append(f"expired waiver ({use.findings} count again): {about}")
        elif use.state == "unused":
            lines.append(f"waiver that covers nothing: {about}")
        else:
            lines.append(f"waived ({use.findings + _unkept(result, use)}): {about}")
    return lines


def _unkept(result: ValidationResult, use: WaiverUse) -> int:
    return result.waived_omitted.get(use.code, 0) if use.where == ANYWHERE else 0


def groups_of(result: ValidationResult) -> list[tuple[Finding, ...]]:
    """Group findings by code, the gravest first."""
    groups: dict[tuple[int, str], list[Finding]] = {}
    for finding in result.findings:
        groups.setdefault((_SEVERITIES.index(finding.severity), finding.code), []).append(finding)
    return [tuple(groups[key]) for key in sorted(groups)]
