"""What building a packet gives back: the files, the evidence, and short ways to what a caller asks of it first."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import NamedTuple

from molforge_env.errors import MolForgeError
from molforge_eval.catalogue import Level
from molforge_eval.findings import Finding
from molforge_eval.report.evidence import Evidence
from molforge_eval.verdict import Outcome


class Packet(NamedTuple):
    """A packet that was written.

    In a notebook it shows its first page, in a frame that runs no script.
    """

    evidence: Evidence
    """Every number, label and chart datum: `evidence.number("score.mean.difference").value` is the difference."""
    evidence_file: Path
    html: Path | None
    """`None` when no page was asked for."""
    pdf: Path | None
    """`None` when no paper was asked for, or none could be made."""
    archive: Path | None
    """The archive beside the run; `None` when it was not made again."""
    paper_fault: MolForgeError | None
    """Why there is no PDF although one was asked for."""

    @property
    def verdict(self) -> Outcome:
        """The outcome by the plan of the run."""
        return self.evidence.verdict.outcome

    @property
    def level(self) -> Level | None:
        """The evidence level that checking has shown; `None` when not even reading was."""
        return self.evidence.level.level

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings that the packet lists; `evidence.omitted_findings` counts those beyond its limit."""
        return self.evidence.findings

    @property
    def paths(self) -> dict[str, Path]:
        """The files that were written, by what they are: `evidence`, `html`, `pdf`, `archive`."""
        named = {"evidence": self.evidence_file, "html": self.html, "pdf": self.pdf, "archive": self.archive}
        return {name: path for name, path in named.items() if path is not None}

    def _repr_html_(self) -> str:
        """Show verdict, level and files, and beneath them the first page in a frame without scripts."""
        from molforge_eval.report.notebook import first_page, frame_of

        items = "".join(f"<li>{name}: <code>{escape(str(path))}</code></li>" for name, path in self.paths.items())
        head = f"<p><strong>{escape(self.verdict)}</strong>, evidence level {escape(self.level or 'none')}</p>"
        return f"{head}<ul>{items}</ul>{frame_of(first_page(self.evidence), title=self.evidence.identity.title)}"
