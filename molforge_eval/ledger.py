"""Where findings are collected: all of a kind up to a limit, the others counted, so that memory stays bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from molforge_eval.findings import Finding, Place
from molforge_eval.limits import DEFAULT_LIMITS

_LOST = frozenset({"NUMBER_NOT_FINITE", "NUMBER_TOO_WIDE", "NUMBER_TOO_LONG"})
"""Codes of a number that reading replaces by nothing."""

_MOST_LOST = 200_000
"""Places of such numbers that are remembered."""


class Ledger:
    """Findings in the order they were made."""

    def __init__(self, findings_a_code: int = DEFAULT_LIMITS.findings_a_code) -> None:
        """Start empty.

        Args:
            findings_a_code: Findings kept of one code.
        """
        self._limit = findings_a_code
        self._kept: list[Finding] = []
        self._counts: Counter[str] = Counter()
        self._lost: set[tuple[str | None, int | None, str | None]] = set()

    def add(self, finding: Finding) -> None:
        """Keep a finding, or count it when its code has reached the limit."""
        self._counts[finding.code] += 1
        if self._counts[finding.code] <= self._limit:
            self._kept.append(finding)
        if finding.code in _LOST and len(self._lost) < _MOST_LOST:
            # Beyond the limit on findings too: what follows from a number that is counted only is not told either.
            self._lost.add(_spot(finding.where))

    def extend(self, findings: Iterable[Finding]) -> None:
        """Add several findings."""
        for finding in findings:
            self.add(finding)

    def count_omitted(self, omitted: Mapping[str, int]) -> None:
        """Take over what another ledger counted and did not keep."""
        self._counts.update(omitted)

    def has_lost(self, place: Place) -> bool:
        """Tell whether the number at a place could not be held: what else is wrong there follows from that."""
        return _spot(place) in self._lost

    def is_full(self, code: str) -> bool:
        """Tell whether further findings of a code are counted only."""
        return self._counts[code] >= self._limit

    def findings(self) -> tuple[Finding, ...]:
        """Return what was kept."""
        return tuple(self._kept)

    def omitted(self) -> dict[str, int]:
        """Return how many findings of a code were counted only."""
        return {code: count - self._limit for code, count in sorted(self._counts.items()) if count > self._limit}


def _spot(place: Place) -> tuple[str | None, int | None, str | None]:
    return place.file, place.line, place.pointer
