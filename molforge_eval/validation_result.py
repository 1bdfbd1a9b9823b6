"""What validation or replay answers: the level that was reached, what was looked at, and every finding."""

from __future__ import annotations

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

    def has_errors(self, *, strict: bool = False) -> bool:
        """Tell whether a finding fails the run; with `strict` a warning does too."""
        failing = ("error", "warning") if strict else ("error",)
        return any(finding.severity in failing for finding in self.findings)
