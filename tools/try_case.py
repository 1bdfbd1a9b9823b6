"""Try case files while writing them: `python -m tools.try_case FILE...` prints what each finds, and what it misses.

Findings are printed in the form in which a case states them.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from evidence_cases.building import Corpus
from evidence_cases.cases import NamedCase, read_case
from evidence_cases.judging import Judged, faults, judge
from evidence_cases.registry import CaseError


def lines_of(judged: Judged) -> Iterator[str]:
    """Yield what was found."""
    if judged.result is None:
        yield f"refused: {judged.refusal}"
        return
    yield f"level {judged.result.level}: {judged.result.level_reason}"
    for item in judged.result.findings:
        place = {key: value for key, value in item.where.model_dump().items() if value is not None}
        stated = {"code": item.code, "severity": item.severity, **place, "what": item.what}
        yield "[[expect.findings]]"
        yield from (f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in stated.items())


def attempt(named: NamedCase, corpus: Corpus, folder: Path) -> tuple[list[str], bool]:
    """Make and judge one case; returns what to print, and whether the case is met."""
    try:
        judged = judge(named, corpus, folder)
    except CaseError as error:
        return [str(error)], False
    unmet = list(faults(named, judged))
    return [*lines_of(judged), *(f"not as wanted: {text}" for text in unmet)], not unmet


def main(paths: list[Path]) -> int:
    """Try each case; returns 1 when one is not met."""
    is_met = True
    with tempfile.TemporaryDirectory() as scratch:
        corpus = Corpus(Path(scratch) / "corpus")
        for number, path in enumerate(paths):
            folder = Path(scratch) / str(number)
            folder.mkdir()
            named = read_case(path)
            text, is_this_met = attempt(named, corpus, folder)
            is_met = is_met and is_this_met
            sys.stdout.write("\n".join([f"# {named.title}", *text, ""]))
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main([Path(word) for word in sys.argv[1:]]))
