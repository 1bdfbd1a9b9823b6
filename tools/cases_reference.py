"""Print `docs/cases.md` from the table of published faults, the finding codes and the case files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from evidence_cases.table import Answer, answers

HEAD = """\
# Published faults and what finds them

Faults that were seen in run folders that people published as evidence, and in public bug reports. Each row says what
the data look like, which finding codes answer it ([what they mean](findings.md)), and where it is tried: a case file
under [`tests/examples/evidence`](../tests/examples/evidence/README.md), or a test by name. A row of which the packet,
the training or the server of the environment is the other half says so. Printed from `tests/examples/cases.toml`.

| id | data | codes | tried in | also a matter of |
|---|---|---|---|---|"""


def page() -> Iterator[str]:
    """Yield the lines of the page, by id."""
    yield HEAD
    for answer in answers():
        yield f"| {' | '.join(_cells(answer))} |"


def _cells(answer: Answer) -> Iterator[str]:
    yield answer.id
    yield answer.row.data
    yield ", ".join(f"`{code}`" for code in answer.codes)
    places = [f"[{case.title}](../tests/examples/evidence/{case.folder}/{case.name}.toml)" for case in answer.cases]
    yield ", ".join([*places, *(f"`{name.partition('::')[2]}`" for name in answer.row.tests)])
    yield answer.row.part or ""


if __name__ == "__main__":
    sys.stdout.write("\n".join([*page(), ""]))
