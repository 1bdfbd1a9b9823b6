"""What the validator says of a case, held against what the case wants."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from evidence_cases.building import CONVERSATIONS, Corpus, make_case
from evidence_cases.cases import ExpectedFinding, NamedCase
from evidence_cases.registry import make_edit
from molforge_env.command_line import run_to_code
from molforge_env.errors import UnreadableError
from molforge_eval.cli.evaluate import cli
from molforge_eval.findings import Finding
from molforge_eval.regeneration import open_wish
from molforge_eval.replay import verify_loaded
from molforge_eval.run_directory import RunDirectory, load
from molforge_eval.validate import CHECKS, OLD_CHECKS, conclude, count_evidence, examine, validate, validate_loaded
from molforge_eval.validation_result import ValidationResult


class Judged(NamedTuple):
    """A case, made and looked at."""

    target: Path
    """The folder or archive."""
    root: Path
    """The folder that the archive was packed from, else the target."""
    result: ValidationResult | None
    """What was found; `None` when the input was refused as a whole."""
    refusal: str | None


def judge(named: NamedCase, corpus: Corpus, folder: Path) -> Judged:
    """Make a case and look at it."""
    root = folder / "run"
    case = named.case
    target = make_case(case, corpus, root)
    data = target / CONVERSATIONS
    try:
        if data.is_file():
            return Judged(data, root, validate(data, case.limits), None)
        run = load(target, case.limits)
    except UnreadableError as error:
        return Judged(target, root, None, str(error))
    for change in case.between:
        make_edit(root, change)
    wish = open_wish() if case.command == "regenerate" else None
    if case.faulty_check is not None:
        result = _validate_faultily(run, case.faulty_check)
    elif case.command == "validate":
        result = validate_loaded(run)
    else:
        result = verify_loaded(run, workers=1, wish=wish)
    return Judged(target, root, result, None)


def _validate_faultily(run: RunDirectory, name: str) -> ValidationResult:
    """Validate by the checks of the run's format, one of which fails after it has found what it finds."""
    checks = OLD_CHECKS if run.format_version == 0 else CHECKS

    def fail(run: RunDirectory) -> Iterator[Finding]:
        yield from checks[name](run)
        raise ArithmeticError("the check is at fault, not the run")

    ledger = examine(run, {**checks, name: fail})
    return conclude(run, ledger, reached="E2", reason="one check is faulty", counts=count_evidence(run))


def faults(named: NamedCase, judged: Judged) -> Iterator[str]:
    """Say what is not as the case wants it."""
    expect = named.case.expect
    if judged.result is None:
        if expect.refused is None or expect.refused not in (judged.refusal or ""):
            yield f"refused: {judged.refusal}"
    else:
        yield from _result_faults(named, judged, judged.result)
    if expect.exit is not None:
        limits = [
            f"--limit={name}={number}" for name, number in named.case.limits.model_dump(exclude_defaults=True).items()
        ]
        words = {
            "validate": ["validate"],
            "verify": ["verify", "--workers=1"],
            "regenerate": ["verify", "--workers=1", "--regenerate"],
        }
        code = run_to_code(cli, [*words[named.case.command], str(judged.target), "--quiet", *limits])
        if code != expect.exit:
            yield f"exit code {code}, wanted {expect.exit}"


def _result_faults(named: NamedCase, judged: Judged, result: ValidationResult) -> Iterator[str]:
    expect = named.case.expect
    if expect.refused is not None:
        yield "the input was not refused"
    found = {item.code for item in result.findings}
    if found != named.codes:
        yield f"found {sorted(found)}, wanted {sorted(named.codes)}: {[item.text() for item in result.findings][:6]}"
    if expect.level is not None and (result.level or "none") != expect.level:
        yield f"level {result.level}, wanted {expect.level}"
    for name, count in expect.counts.items():
        if result.counts.get(name) != count:
            yield f"{result.counts.get(name)} {name}, wanted {count}"
    for wanted in expect.findings:
        code = wanted.code or named.folder
        items = [item for item in result.findings if item.code == code]
        if not any(_is_met(wanted, item, judged.root) for item in items):
            yield f"no finding {code} is {wanted.model_dump(exclude_none=True)}: {[item.text() for item in items][:6]}"
        if wanted.count is not None and len(items) != wanted.count:
            yield f"{len(items)} findings {code}, wanted {wanted.count}"


def _is_met(wanted: ExpectedFinding, item: Finding, root: Path) -> bool:
    where = item.where
    is_line_derived = (where.file or "").endswith(".json") and wanted.line is None
    return (
        wanted.what in item.what
        and wanted.file == where.file
        and wanted.pointer == where.pointer
        and (is_line_derived or wanted.line == where.line or wanted.line_holds is not None)
        and wanted.episode in (None, where.episode)
        and wanted.step in (None, where.step)
        and wanted.severity in (None, item.severity)
        and (wanted.line_holds is None or wanted.line_holds in _line_of(item, root))
    )


def _line_of(item: Finding, root: Path) -> str:
    if item.where.file is None or item.where.line is None:
        return ""
    data = (root / item.where.file).read_bytes().split(b"\n")
    return data[item.where.line - 1].decode("utf-8", "replace")
