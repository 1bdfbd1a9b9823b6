"""What validation or replay answers: the level that was reached, what was looked at, and every finding."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from typing import Literal

from pydantic import Field

from molforge_env.errors import MolForgeError
from molforge_env.frozen import FrozenModel
from molforge_eval.catalogue import Level, entry_of, printable
from molforge_eval.findings import Finding, Severity
from molforge_eval.records.fields import Count, Sha256
from molforge_eval.waivers import WaivedFinding, Waiver, WaiverUse, apply_waivers


class Refusal(FrozenModel):
    """Why a run could not be read at all."""

    what: str
    where: str
    mend: str


class ValidationResult(FrozenModel):
    """The answer for one run."""

    result_version: Literal[1] = 1
    run: str
    """Name of the directory or archive, without its folder."""
    path: str | None = None
    """Path from the working directory, or the name of a run that stands outside it."""
    run_id: str | None
    run_format: Literal[0, 1] | None
    """Format version of the run: 0 is the public script's layout; `None` when it could not be read."""
    level: Level | None
    """Highest evidence level that was shown; `None` when not even reading was."""
    level_reason: str
    """Why the level is not higher."""
    root_sha256: Sha256 | None
    counts: dict[str, Count]
    """How much was looked at, by what it is."""
    findings: tuple[Finding, ...]
    """Those that count; a waived one stands in `waived`."""
    omitted: dict[str, Count]
    """Findings beyond the limit, by code."""
    only: tuple[str, ...] = ()
    """Codes that the findings were limited to by the reader's wish; empty when nothing was left out."""
    left_out: Count = 0
    """Findings of other codes, which count for the level and for nothing else."""
    waivers: tuple[WaiverUse, ...] = ()
    """What became of each waiver that was given."""
    waived: tuple[WaivedFinding, ...] = ()
    """Findings that count for the level and do not fail the run."""
    waived_omitted: dict[str, Count] = Field(default_factory=dict)
    """Findings beyond the limit that were waived, by code."""
    unreadable: Refusal | None = None
    """Why nothing was looked at; `None` for a run that could be read."""

    @classmethod
    def refused(cls, run: str, error: MolForgeError) -> ValidationResult:
        """Make the answer for a run that could not be read."""
        refusal = Refusal(what=printable(error.what), where=printable(error.where), mend=printable(error.mend))
        return cls(
            run=printable(run),
            run_id=None,
            run_format=None,
            level=None,
            level_reason=refusal.what,
            root_sha256=None,
            counts={},
            findings=(),
            omitted={},
            unreadable=refusal,
        )

    def has_errors(self, *, strict: bool = False) -> bool:
        """Tell whether a finding fails the run; with `strict` a warning does too."""
        failing: tuple[Severity, ...] = ("error", "warning") if strict else ("error",)
        if any(finding.severity in failing for finding in self.findings):
            return True
        return any(
            count and entry_of(code).severity_in(self.run_format) in failing for code, count in self.omitted.items()
        )

    def limited_to(self, codes: Collection[str]) -> ValidationResult:
        """Keep the findings of some codes; what was left out is counted, and the level stays what it was."""
        kept = tuple(finding for finding in self.findings if finding.code in codes)
        waived = tuple(entry for entry in self.waived if entry.finding.code in codes)
        omitted = {code: count for code, count in self.omitted.items() if code in codes}
        left_out = len(self.findings) - len(kept) + sum(self.omitted.values()) - sum(omitted.values())
        changes = {"only": tuple(sorted(set(codes))), "findings": kept, "omitted": omitted, "left_out": left_out}
        return self.model_copy(update={**changes, "waived": waived})

    def waived_by(self, waivers: Sequence[Waiver], *, today: date) -> ValidationResult:
        """Let findings pass that a waiver covers; the level stays what it was.

        Args:
            waivers: In the order of their file.
            today: The day in UTC.
        """
        parted = apply_waivers(self.findings, self.omitted, waivers, today=today)
        left = {code: count for code, count in self.omitted.items() if code not in parted.waived_omitted}
        changes = {"findings": parted.findings, "omitted": left, "waivers": parted.uses, "waived": parted.waived}
        return self.model_copy(update={**changes, "waived_omitted": parted.waived_omitted})
