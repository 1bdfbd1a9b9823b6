"""The runs that enter a comparison: each checked like any other, and told why it may or may not be compared.

Nothing is hidden: a run with errors, one that repeats another, one that could not be read stands in the list with its
reason. Its scores do not stand beside those of others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from molforge_env.errors import MolForgeError
from molforge_eval.catalogue import printable
from molforge_eval.pairing import pair_scores
from molforge_eval.records.evaluation import Evaluation, EvaluationPlan
from molforge_eval.report.assembly import Checked
from molforge_eval.report.comparison_evidence import RunState
from molforge_eval.report.old_arms import Arm, absence, arms_of
from molforge_eval.report.old_statement import judge_old
from molforge_eval.report.provenance import UNKNOWN
from molforge_eval.report.quoting import quote
from molforge_eval.verdict import LEAST_COUNTED_SHARE, Outcome

LONGEST_LABEL = 28
REFERENCE = "reference policies"
"""Label of the row that no run has."""
LONGEST_REASON = 300
MOST_REASONS = 8
_BY_ID = "id "
NO_SEEDS = "format version 0 records no plan and no seed: its means stand as the files list them, and nothing is paired"


class Rival(NamedTuple):
    """One run as it was named."""

    key: str
    path: Path
    label: str
    checked: Checked | None
    """`None` for a run that could not be read."""
    fault: MolForgeError | None
    state: RunState
    reasons: tuple[str, ...]
    outcome: Outcome | None
    same_as: str | None

    @property
    def run_id(self) -> str:
        """The id that its manifest gives."""
        manifest = None if self.checked is None else self.checked.run.manifest
        return UNKNOWN if manifest is None else manifest.run_id

    @property
    def after(self) -> Evaluation | None:
        """The evaluation that is compared."""
        return None if self.checked is None else self.checked.run.after

    @property
    def plan(self) -> EvaluationPlan | None:
        """The plan of the evaluation that is compared: what was played, whatever the run's own file says."""
        return None if self.after is None else self.after.plan

    @property
    def arms(self) -> tuple[Arm, Arm] | None:
        """The two evaluations of a run of format version 0."""
        if self.checked is None or self.checked.run.format_version != 0:
            return None
        return arms_of(self.checked.run)

    def is_compared(self) -> bool:
        """Tell whether its differences to others may be claimed."""
        return self.state == "compared"


class Entry(NamedTuple):
    """What became of reading one run."""

    path: Path
    checked: Checked | None
    fault: MolForgeError | None


def enter_runs(entries: Sequence[Entry]) -> tuple[Rival, ...]:
    """Give every run a key and a label of its own, and say whether it may be compared.

    Of several that are one run, by the hash of their records, by the adapter, or by the id where no adapter says
    otherwise, the first one without errors stands for all that come after it. Whoever shares an id or an adapter with
    another is told so, the first one too: whose it is cannot be shown.
    """
    labels = _tell_apart([_name_of(entry) for entry in entries])
    first_with: dict[str, str] = {}
    rivals: list[Rival] = []
    for number, (entry, label) in enumerate(zip(entries, labels, strict=True), start=1):
        key = f"r{number}"
        same_as, repeated = _find_same(entry.checked, first_with, rivals)
        state, reasons, outcome = _judge(entry)
        # A run with errors stands for no other: a broken copy that is named first would take a sound run's scores away.
        if state != "withheld":
            for mark in _marks_of(entry.checked):
                first_with.setdefault(mark, key)
        if same_as is not None:
            state, reasons = "repeated", (repeated, *reasons)
        reasons = tuple(quote(reason, LONGEST_REASON) for reason in reasons[:MOST_REASONS])
        rivals.append(Rival(key, entry.path, label, entry.checked, entry.fault, state, reasons, outcome, same_as))
    return tuple(_tell_shared(rival, rivals) for rival in rivals)


def _tell_shared(rival: Rival, rivals: Sequence[Rival]) -> Rival:
    """Name, of a run that stands for itself, those with which it shares an id or an adapter."""
    if rival.same_as is not None:
        return rival
    words = []
    for other in rivals:
        if other is rival or not _is_sound(other) or not _is_sound(rival) or _root_of(other) == _root_of(rival):
            continue
        if _id_of(other) == _id_of(rival) is not None:
            words.append(f"{other.key} has the same run id and other records: whose it is cannot be shown")
        elif _adapter_of(other) == _adapter_of(rival) is not None:
            words.append(f"{other.key} has the same adapter: whose it is cannot be shown")
    return rival._replace(reasons=(*words, *rival.reasons)[:MOST_REASONS])


def _is_sound(rival: Rival) -> bool:
    return rival.state not in {"withheld", "unreadable"}


def _root_of(rival: Rival) -> str | None:
    return None if rival.checked is None else rival.checked.root_sha256


def _id_of(rival: Rival) -> str | None:
    manifest = None if rival.checked is None else rival.checked.run.manifest
    return None if manifest is None else manifest.run_id


def _adapter_of(rival: Rival) -> str | None:
    return None if rival.checked is None else _adapter_in(rival.checked)


def _adapter_in(checked: Checked) -> str | None:
    manifest = checked.run.manifest
    return None if manifest is None or manifest.output_adapter is None else manifest.output_adapter.sha256


def _name_of(entry: Entry) -> str:
    checked = entry.checked
    if checked is None:
        return entry.path.name or str(entry.path)
    run = checked.run
    if run.manifest is not None:
        return run.manifest.run_name
    old = None if run.old is None or run.old.manifest is None else run.old.manifest.run_name
    return old or run.name


def _tell_apart(names: Sequence[str]) -> list[str]:
    """Give every run a label that is no other's, nor that of the row of reference policies."""
    labels = [quote(name, LONGEST_LABEL) or UNKNOWN for name in names]
    # A name may itself read like one that was numbered: numbering goes on until no two labels are alike.
    while shared := {label for label, count in Counter([REFERENCE, *labels]).items() if count > 1}:
        labels = [f"{label} (r{n})" if label in shared else label for n, label in enumerate(labels, start=1)]
    return labels


def _marks_of(checked: Checked | None) -> Mapping[str, str]:
    """Name a run by its hash and by its id, each with the words for two runs that share it."""
    if checked is None:
        return {}
    marks: dict[str, str] = {}
    if checked.root_sha256 is not None:
        marks[f"root {checked.root_sha256}"] = "its records are those of {}, byte for byte"
    manifest = checked.run.manifest
    if manifest is not None:
        marks[f"{_BY_ID}{manifest.run_id}"] = "it has the run id of {} and other records: two states of one run"
        if manifest.output_adapter is not None:
            words = "it has the adapter of {}: one training, evaluated again"
            marks[f"adapter {manifest.output_adapter.sha256}"] = words
    return marks


def _find_same(
    checked: Checked | None, first_with: Mapping[str, str], rivals: Sequence[Rival]
) -> tuple[str | None, str]:
    for mark, words in _marks_of(checked).items():
        if mark in first_with:
            first = first_with[mark]
            if mark.startswith(_BY_ID) and _are_two_trainings(checked, first, rivals):
                continue
            return first, words.format(first)
    return None, ""


def _are_two_trainings(checked: Checked | None, first: str, rivals: Sequence[Rival]) -> bool:
    """Tell whether a run has another adapter than the first one with its id: an id can be copied."""
    adapters = {None if checked is None else _adapter_in(checked)}
    adapters |= {_adapter_of(rival) for rival in rivals if rival.key == first}
    return None not in adapters and len(adapters) > 1


def _judge(entry: Entry) -> tuple[RunState, tuple[str, ...], Outcome | None]:
    checked = entry.checked
    if checked is None:
        what = "it cannot be read" if entry.fault is None else printable(entry.fault.what)
        return "unreadable", (what,), None
    if checked.run.format_version == 0:
        return _judge_old(checked)
    remarks, verdict = tuple(_remarks(checked)), checked.verdict
    if verdict is None:
        state: RunState = "withheld" if checked.result.has_errors() else "incomplete"
        return state, ("the run has no evaluation plan to judge by", *remarks), "incomplete"
    # Why a verdict is not given is told; what one that is given rests on stands in the packet of the run.
    reasons = verdict.reasons if verdict.outcome in {"withheld", "incomplete"} else ()
    if checked.result.level is None or checked.result.level < "E2":
        reasons = (f"level E2 was not shown: {checked.result.level_reason}", *reasons)
        return "withheld", (*reasons, *remarks), verdict.outcome
    if checked.result.has_errors() or verdict.outcome == "withheld":
        return "withheld", (*reasons, *remarks), verdict.outcome
    return ("compared" if _has_score(checked) else "incomplete"), (*reasons, *remarks), verdict.outcome


def _has_score(checked: Checked) -> bool:
    """Tell whether enough of the evaluation after training was counted; one before it is not needed for a score."""
    after = checked.run.after
    if after is None or checked.verdict is None or checked.verdict.sampled.after_mean is None:
        return False
    counted = pair_scores(None, after, after.plan, after.plan.decision.part).after
    planned = sum(len(p.tasks) * len(p.seeds) for p in after.plan.parts if p.name == after.plan.decision.part)
    return len(counted) >= planned * LEAST_COUNTED_SHARE


def _judge_old(checked: Checked) -> tuple[RunState, tuple[str, ...], Outcome | None]:
    run, findings = checked.run, checked.result.findings
    arms = arms_of(run)
    statement = judge_old(run, arms, findings, checked.ladder)
    if checked.result.has_errors():
        return "withheld", statement.reasons, "withheld"
    gone = absence(arms[1])
    if gone is not None:
        return "incomplete", (gone, NO_SEEDS), statement.outcome
    return "unpaired", (NO_SEEDS,), statement.outcome


def _remarks(checked: Checked) -> list[str]:
    """Say what a reader has to know of a run that is compared all the same."""
    manifest = checked.run.manifest
    if manifest is None or manifest.status == "complete":
        return []
    return [f"its training is {manifest.status}: {manifest.status_reason or 'no reason is given'}"]
