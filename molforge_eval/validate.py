"""Validation: read a run, ask every check, and say which evidence level was shown.

Checks are independent: one that stops on something nobody thought of is itself a finding, and hides no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from molforge_eval import layout
from molforge_eval.catalogue import LEVELS, Level, entry_of, finding, printable
from molforge_eval.checks import (
    adapters,
    card,
    comparability,
    configuration,
    evaluations,
    identity,
    magnitudes,
    numbers,
    old_comparability,
    old_episodes,
    old_evaluations,
    old_identity,
    old_pictures,
    old_presence,
    old_rollouts,
    old_states,
    old_summary,
    old_tables,
    old_training,
    packet,
    plans,
    plots,
    presence,
    privacy,
    prompts,
    resumed,
    rollouts,
    seals,
    speech,
    tables,
    times,
    trainer_means,
    training,
)
from molforge_eval.conversations import is_conversation_file, read_conversations
from molforge_eval.findings import Finding
from molforge_eval.json_positions import lines_of_pointers
from molforge_eval.ledger import Ledger
from molforge_eval.limits import DEFAULT_LIMITS, Limits
from molforge_eval.old_trainer_log import in_source
from molforge_eval.run_directory import RunDirectory, load
from molforge_eval.validation_result import ValidationResult

Check = Callable[[RunDirectory], Iterator[Finding]]

CHECKS: Mapping[str, Check] = {
    "presence": presence.check,
    "identity": identity.check,
    "times": times.check,
    "seals": seals.check,
    "evaluations": evaluations.check,
    "plans": plans.check,
    "comparability": comparability.check,
    "configuration": configuration.check,
    "training": training.check,
    "resumed": resumed.check,
    "rollouts": rollouts.check,
    "speech": speech.check,
    "prompts": prompts.check,
    "trainer_means": trainer_means.check,
    "magnitudes": magnitudes.check,
    "numbers": numbers.check,
    "tables": tables.check,
    "plots": plots.check,
    "adapters": adapters.check,
    "card": card.check,
    "packet": packet.check,
    "privacy": privacy.check,
}
OLD_CHECKS: Mapping[str, Check] = {
    "old_presence": old_presence.check,
    "old_identity": old_identity.check,
    "old_states": old_states.check,
    "old_episodes": old_episodes.check,
    "old_evaluations": old_evaluations.check,
    "old_comparability": old_comparability.check,
    "old_summary": old_summary.check,
    "old_training": old_training.check,
    "old_rollouts": old_rollouts.check,
    "old_tables": old_tables.check,
    "old_pictures": old_pictures.check,
    "adapters": adapters.check,
    "packet": packet.check,
    "privacy": privacy.check,
}
"""What a run of format version 0 is asked: what it claims, not what its version never had."""
OF_LOGS = frozenset(
    {
        *("configuration", "training", "resumed", "rollouts", "trainer_means", "numbers", "tables", "plots"),
        *("old_summary", "old_training", "old_rollouts", "old_tables", "old_pictures"),
    }
)
"""Checks that compare with the logs; they are not asked about a packet that was made without."""
OF_BYTES = frozenset({"privacy"})
"""Checks that search the bytes of files, which Python lets a second thread do beside the others. They ask nothing of
the tables: two checks that do would need the memory of both at a time."""
OLD_REASON = (
    "the run has format version 0: its episodes have no seeds and no arguments, so level E3 is out of its reach"
)
_SEVERITIES = ("error", "warning", "info")


def validate(path: Path, limits: Limits = DEFAULT_LIMITS) -> ValidationResult:
    """Validate a run directory, an archive of one, its packet PDF, or a file of conversations, up to level E2.

    Args:
        path: The directory, the archive, the PDF or the file.
        limits: Bounds on what is read.

    Raises:
        UnreadableError: The path is absent or holds nothing of a run.
    """
    if is_conversation_file(path):
        return _validate_conversations(path, limits)
    return validate_loaded(load(path, limits))


def _validate_conversations(path: Path, limits: Limits) -> ValidationResult:
    file = read_conversations(path, limits)
    found = in_order(file.ledger.findings())
    level, denied = level_of(found, "E2")
    return ValidationResult(
        run=printable(path.name),
        run_id=None,
        run_format=1,
        level=level,
        level_reason=denied or "every call of the conversations was played again, and a file of them claims no more",
        root_sha256=None,
        counts={"conversations": len(file.conversations), "calls": file.calls},
        findings=found,
        omitted=file.ledger.omitted(),
    )


def validate_loaded(run: RunDirectory) -> ValidationResult:
    """Do what `validate` does with a run that was read already."""
    ledger = examine(run)
    reason = "`molforge-eval verify` plays the episodes again, which is level E3"
    return conclude(run, ledger, reached="E2", reason=reason, counts=count_evidence(run))


def examine(run: RunDirectory, checks: Mapping[str, Check] | None = None) -> Ledger:
    """Ask checks about a run, by default those of its format version; what reading found comes first.

    Findings stand in the order of the checks, whichever was done first.
    """
    ledger = Ledger(run.limits.findings_a_code)
    ledger.extend(run.findings)
    ledger.count_omitted(run.omitted)
    if checks is None:
        checks = OLD_CHECKS if run.format_version == 0 else CHECKS
    asked = {name: check for name, check in checks.items() if not (run.lacks_a_log() and name in OF_LOGS)}
    with ThreadPoolExecutor(max_workers=1) as beside:
        waited = {name: beside.submit(_ask, name, check, run) for name, check in asked.items() if name in OF_BYTES}
        answers = {name: _ask(name, check, run) for name, check in asked.items() if name not in waited}
        answers |= {name: answer.result() for name, answer in waited.items()}
    for name in asked:
        ledger.extend(answers[name].findings())
        ledger.count_omitted(answers[name].omitted())
    return ledger


def _ask(name: str, check: Check, run: RunDirectory) -> Ledger:
    answer = Ledger(run.limits.findings_a_code)
    try:
        answer.extend(check(run))
    except Exception as error:  # noqa: BLE001 - the boundary of a check: hostile evidence must not hide the findings of others
        what = f"check {name} stopped on this evidence: {type(error).__name__}: {error}"
        answer.add(finding("CHECK_STOPPED", what))
    return answer


def conclude(
    run: RunDirectory, ledger: Ledger, *, reached: Level, reason: str, counts: Mapping[str, int]
) -> ValidationResult:
    """Put findings in order, find their lines, and decide the level.

    Args:
        run: What was looked at.
        ledger: What was found.
        reached: The highest level whose checks were run.
        reason: Why it is not higher when nothing denies it.
        counts: How much was looked at.
    """
    found = in_order(with_severities(with_lines(with_sources(ledger.findings(), run), run), run))
    if run.format_version == 0:
        reached, reason = min(reached, "E2"), OLD_REASON
    level, denied = level_of(found, reached)
    return ValidationResult(
        # A name that is no UTF-8 has no JSON spelling.
        run=printable(run.name),
        run_id=None if run.manifest is None else run.manifest.run_id,
        run_format=run.format_version,
        level=level,
        level_reason=denied or reason,
        root_sha256=None if run.checksums is None else run.checksums.root_sha256,
        counts=dict(counts),
        findings=found,
        omitted=ledger.omitted(),
    )


def with_sources(findings: Iterable[Finding], run: RunDirectory) -> tuple[Finding, ...]:
    """Place findings about rows of the trainer in the file that was read in place of its log."""
    if run.stand_in is None:
        return tuple(findings)
    source, form = run.stand_in
    return tuple(
        in_source(item, source, form) if item.where.file == layout.TRAINER_LOG and item.where.line is not None else item
        for item in findings
    )


def with_severities(findings: Iterable[Finding], run: RunDirectory) -> Iterator[Finding]:
    """Give every finding the severity that its code has in the format version of the run."""
    for item in findings:
        severity = entry_of(item.code).severity_in(run.format_version)
        yield item if item.severity == severity else item.model_copy(update={"severity": severity})


def level_of(findings: Iterable[Finding], reached: Level) -> tuple[Level | None, str | None]:
    """Find the highest level that no error denies.

    Returns:
        The level, `None` when not even E0 stands, and the reason when an error stopped the climb.
    """
    denying: dict[str, list[str]] = {}
    for entry in (entry_of(item.code) for item in findings if item.severity == "error"):
        denying.setdefault(entry.level, []).append(entry.code)
    level: Level | None = None
    for step in LEVELS[: LEVELS.index(reached) + 1]:
        if step in denying:
            codes = sorted(set(denying[step]))
            others = f" and {len(codes) - 1} more" if len(codes) > 1 else ""
            return level, f"{step} is denied by {codes[0]}{others}"
        level = step
    return level, None


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Order findings by severity, then by where they stand."""
    return tuple(
        sorted(
            findings,
            key=lambda item: (
                _SEVERITIES.index(item.severity),
                item.where.file or "",
                item.where.line or 0,
                item.code,
                item.where.pointer or "",
            ),
        )
    )


def with_lines(findings: Iterable[Finding], run: RunDirectory) -> Iterator[Finding]:
    """Add the line to findings that know a pointer into a JSON file of the run."""
    found = list(findings)
    wanted: dict[str, list[str]] = {}
    for item in found:
        if _lacks_line(item, run):
            wanted.setdefault(item.where.file or "", []).append(item.where.pointer or "")
    lines = {path: _lines_in(path, pointers, run) for path, pointers in wanted.items()}
    for item in found:
        where = item.where
        line = lines.get(where.file or "", {}).get(where.pointer or "") if _lacks_line(item, run) else None
        yield item if line is None else item.model_copy(update={"where": where.model_copy(update={"line": line})})


def _lacks_line(item: Finding, run: RunDirectory) -> bool:
    where = item.where
    return (
        where.line is None
        and where.file is not None
        and where.file.endswith(".json")
        and where.file in run.files
        and (where.pointer or "").startswith("/")
    )


def _lines_in(path: str, pointers: list[str], run: RunDirectory) -> Mapping[str, int]:
    try:
        data = run.files.read(path, at_most=run.limits.file_bytes)
    except OSError:
        return {}
    return {} if data is None else lines_of_pointers(data, pointers)


def count_evidence(run: RunDirectory) -> dict[str, int]:
    """Count what a run holds and a validation looks at."""
    played = run.evaluations() if run.old is None else run.old.evaluations()
    evaluated = sum(len(evaluation.episodes or ()) for _, evaluation in played)
    return {
        "records": sum(layout.is_record(path) for path in run.files.sizes),
        "rollout_lines": len(run.every_rollout),
        "training_episodes": run.every_rollout["episode_id"].drop_nulls().n_unique(),
        "trainer_rows": len(run.every_trainer_row),
        "evaluation_episodes": evaluated,
        "plots": 0 if run.plot_table is None else len(run.plot_table.plots),
    }
