"""What validation or replay answers: the level that was reached, what was looked at, and every finding."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from molforge_env.frozen import FrozenModel
from molforge_eval.catalogue import Level
from molforge_eval.findings import Finding
from molforge_eval.records.fields import Count, Sha256


class ValidationResult(FrozenModel):
    """The answer for one run."""

    result_version: Literal[1] = 1
    run: str
    """Name of the directory or archive, without its folder."""
    run_id: str | None
    run_format: Literal[0, 1]
    """Format version of the run: 0 is the public script's layout."""
    level: Level | None
    """Highest evidence level that was shown; `None` when not even reading was."""
    level_reason: str
    """Why the level is not higher."""
    root_sha256: Sha256 | None
    counts: dict[str, Count]
    """How much was looked at, by what it is."""
    findings: tuple[Finding, ...]
    omitted: dict[str, Count]
    """Findings beyond the limit, by code."""
    only: tuple[str, ...] = ()
    """Codes that the findings were limited to by the reader's wish; empty when nothing was left out."""
    left_out: Count = 0
    """Findings of other codes, which count for the level and for nothing else."""

    def has_errors(self, *, strict: bool = False) -> bool:
        """Tell whether a finding fails the run; with `strict` a warning does too."""
        failing = ("error", "warning") if strict else ("error",)
        return any(finding.severity in failing for finding in self.findings)

    def limited_to(self, codes: Collection[str]) -> ValidationResult:
        """Keep the findings of some codes; what was left out is counted, and the level stays what it was."""
        kept = tuple(finding for finding in self.findings if finding.code in codes)
        omitted = {code: count for code, count in self.omitted.items() if code in codes}
        left_out = len(self.findings) - len(kept) + sum(self.omitted.values()) - sum(omitted.values())
        changes = {"only": tuple(sorted(set(codes))), "findings": kept, "omitted": omitted, "left_out": left_out}
        return self.model_copy(update=changes)
