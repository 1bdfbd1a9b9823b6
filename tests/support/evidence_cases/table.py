"""The table of published faults: each id, what gives its code, and where it is tried."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from pydantic import Field

from evidence_cases.cases import EXAMPLES, NamedCase, read_cases
from molforge_env.frozen import FrozenModel
from molforge_eval.catalogue import codes

TABLE = EXAMPLES.parent / "cases.toml"


class Row(FrozenModel):
    """One published fault."""

    data: str = Field(pattern=r"\.$")
    """What the data look like, in one sentence."""
    part: Literal["packet", "training", "server"] | None = None
    """Who else answers it; then no case of the validator is needed."""
    tests: tuple[str, ...] = ()
    """Tests by path and name, for what no case file can show."""


class Answer(NamedTuple):
    """A row with what answers it."""

    id: str
    row: Row
    codes: tuple[str, ...]
    """Finding codes that say in their entry, or by a case in their folder, that they answer it."""
    cases: tuple[NamedCase, ...]


def read_table() -> Mapping[str, Row]:
    """Read the rows by id."""
    return {name: Row(**body) for name, body in tomllib.loads(TABLE.read_text(encoding="utf-8")).items()}


def answers() -> Iterator[Answer]:
    """Yield every row with its codes and cases, by id."""
    cases = read_cases()
    for name, row in sorted(read_table().items()):
        tried = tuple(named for named in cases if name in named.case.cases)
        said = {entry.code for entry in codes().values() if name in entry.cases}
        found = said | {named.folder for named in tried if named.folder in codes()}
        yield Answer(name, row, tuple(sorted(found)), tried)


def ids_in_use() -> frozenset[str]:
    """Every id that a finding code or a case file names."""
    in_codes = {name for entry in codes().values() for name in entry.cases}
    return frozenset(in_codes | {name for named in read_cases() for name in named.case.cases})
