"""Cases as they stand in files, and the corpus of sound runs that they begin from."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from molforge_env.frozen import FrozenModel
from molforge_eval.findings import Severity
from molforge_eval.limits import DEFAULT_LIMITS, Limits

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples" / "evidence"
SOUND = "sound"

Spec = dict[str, Any]


class ExpectedFinding(FrozenModel):
    """A finding that must be there; a field that is not stated is `None` in the finding too, except as said."""

    code: str | None = None
    """The code of the folder when absent."""
    file: str | None = None
    line: int | None = None
    """In a JSON file it follows from the pointer and need not be stated."""
    line_holds: str | None = None
    """A text that stands in that line of the file."""
    pointer: str | None = None
    episode: str | None = None
    """Compared when stated."""
    step: int | None = None
    """Compared when stated."""
    severity: Severity | None = None
    """Compared when stated."""
    what: str
    """A part of the sentence."""
    count: int | None = None
    """How many findings there are of this code, when stated."""


class Expected(FrozenModel):
    """What the validator must say, and nothing beyond."""

    codes: tuple[str, ...] = ()
    """Every code that is found, the folder's own among them; absent: the folder's own alone."""
    findings: tuple[ExpectedFinding, ...] = ()
    level: Literal["none", "E0", "E1", "E2", "E3", "E4"] | None = None
    counts: dict[str, int] = Field(default_factory=dict)
    """How much was looked at, by the names of the result; compared when stated."""
    exit: int | None = None
    """Exit code of the command."""
    refused: str | None = None
    """A part of the message when the input is no run at all."""


class Case(FrozenModel):
    """A case file."""

    did: str = Field(min_length=10, pattern=r"\.$")
    """One sentence: what a person did to the run."""
    cases: tuple[str, ...] = ()
    """Published cases that this is an instance of, exactly in their data terms."""
    base: str | None = None
    """Name of the sound run that the edits begin from; `built` when neither this nor `make` is stated."""
    make: str | None = None
    """How a run is made from nothing, or from the base in another layout."""
    arguments: Spec = Field(default_factory=dict)
    """Arguments of `make`."""
    edits: tuple[Spec, ...] = ()
    seal: Literal["nothing", "hashes", "all", "old", "script"] = "all"
    pack: Spec | None = None
    """Pack the run after it was sealed; the archive is then what is judged."""
    paper: Spec | None = None
    """Put the run into a packet PDF after it was sealed; the PDF is then what is judged."""
    between: tuple[Spec, ...] = ()
    """Edits made after the run was read and before it is checked."""
    command: Literal["validate", "verify", "regenerate"] = "validate"
    """`regenerate` is `verify --regenerate`."""
    faulty_check: str | None = None
    """Name of a check that has a fault of its own: it finds what it finds, and then fails."""
    limits: Limits = DEFAULT_LIMITS
    expect: Expected = Expected()


class NamedCase(FrozenModel):
    """A case and where it stands."""

    folder: str
    """A finding code, or `sound`."""
    name: str
    case: Case

    @property
    def title(self) -> str:
        """Name of the case in a test."""
        return self.folder if self.name == "case" else f"{self.folder}/{self.name}"

    @property
    def codes(self) -> frozenset[str]:
        """The codes that must be found, and no others."""
        if self.folder == SOUND or self.case.expect.codes:
            return frozenset(self.case.expect.codes)
        return frozenset() if self.case.expect.refused else frozenset({self.folder})


def read_cases() -> tuple[NamedCase, ...]:
    """Read every case file, sound runs included, by folder and name."""
    return tuple(read_case(path) for path in sorted(EXAMPLES.glob("*/*.toml")))


def read_case(path: Path) -> NamedCase:
    """Read one case file."""
    case = Case.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    return NamedCase(folder=path.parent.name, name=path.stem, case=case)
