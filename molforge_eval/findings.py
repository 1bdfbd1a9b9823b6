"""A finding: what is wrong in some evidence, where, and how to mend it.

Findings are data; every voice (text, JSON, page) renders the same fields. Bad evidence never raises.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from molforge_env.frozen import FrozenModel

Severity = Literal["error", "warning", "info"]


class Place(FrozenModel):
    """Where a finding stands; a field that does not apply is `None`."""

    file: str | None = None
    """Path inside the run directory."""
    line: int | None = Field(default=None, ge=1)
    pointer: str | None = None
    """JSON pointer, or a column."""
    episode: str | None = None
    step: int | None = None

    def text(self) -> str:
        """Spell the place as `file:line $pointer, episode E, step S`."""
        head = self.file or "run directory"
        if self.line is not None:
            head += f":{self.line}"
        if self.pointer:
            head += f" {self.pointer}"
        rest = []
        if self.episode is not None:
            rest.append(f"episode {self.episode}")
        if self.step is not None:
            rest.append(f"step {self.step}")
        return ", ".join([head, *rest])


class Finding(FrozenModel):
    """One fault of one place."""

    code: str = Field(pattern=r"^[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$")
    severity: Severity
    where: Place
    what: str
    mend: str

    def text(self) -> str:
        """Spell the finding in three lines."""
        return f"{self.what}\n  where: {self.where.text()}\n  mend:  {self.mend}"
