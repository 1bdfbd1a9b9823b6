"""Print `docs/findings.md` from the table of finding codes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby

from molforge_eval.catalogue import CodeEntry, codes
from molforge_eval.limits import DEFAULT_LIMITS

HEAD = """\
# Findings

What `molforge-eval validate` and `verify` can say about a run. This page is printed from
`molforge_eval/data/findings.toml`; `molforge-eval explain CODE` prints one entry of it.

An `error` fails the run and denies its evidence level; a `warning` is shown in the packet and fails only with
`--strict`; an `info` never fails. The rules:

| rule | meaning |
|---|---|
| R1 | Nothing is dropped silently: what cannot be used is named with its line. |
| R2 | A number that is not finite is named, never charted, averaged or written as if absent. |
| R3 | Strict JSON out; tolerant but loud in. |
| R4 | Every claim can be computed again from records, and is. |
| R5 | Before and after are comparable, or there is no difference to speak of. |
| R6 | Nothing reads the network or a file outside the run. |
| R7 | Every artifact belongs to this run: id, hash and time agree. |
| R8 | One bad file gives findings, never a traceback, and hides no finding in another file. |
"""

LIMITS_HEAD = """\
## Limits

What a stranger's file may ask for. `--limit NAME=NUMBER` of `validate` and `verify` changes one.

| name | default |
|---|---|"""

LEVEL_HEADS = {
    "E0": "E0: the files are readable and safe",
    "E1": "E1: every artifact fits its schema",
    "E2": "E2: the artifacts agree with each other",
    "E3": "E3: the episodes were played again",
    "E4": "E4: the model wrote its greedy episodes again",
}


def page() -> Iterator[str]:
    """Yield the lines of the page, codes by level and then by name."""
    yield HEAD
    yield LIMITS_HEAD
    yield from (f"| `{name}` | {value:,} |" for name, value in DEFAULT_LIMITS)
    yield ""
    ordered = sorted(codes().values(), key=lambda entry: (entry.level, entry.code))
    for level, entries in groupby(ordered, key=lambda entry: entry.level):
        yield f"## {LEVEL_HEADS[level]}\n"
        for entry in entries:
            yield from _section(entry)


def _section(entry: CodeEntry) -> Iterator[str]:
    yield f"### {entry.code}\n"
    old = "" if entry.old_severity is None else f", {entry.old_severity} in format version 0"
    yield f"{entry.meaning} ({entry.severity}{old}, {entry.rule})\n"
    yield f"- Why: {entry.reason}"
    yield f"- Example: `{entry.example}`"
    yield f"- Mend: {entry.mend}\n"


if __name__ == "__main__":
    sys.stdout.write("\n".join(page()))
