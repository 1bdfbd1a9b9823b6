"""Findings for a program: one JSON object a run, in the shape of `schemas/validation_result.schema.json`."""

from __future__ import annotations

from collections.abc import Sequence

from molforge_env.errors import UnreadableError
from molforge_eval.canonical import JsonValue, file_bytes, plain
from molforge_eval.validation_result import ValidationResult
from molforge_eval.voices.judged_run import JudgedRun


def render(runs: Sequence[JudgedRun]) -> str:
    """Spell runs as JSON: an object for one run, a list for several. A run that cannot be read has its object too."""
    answers = [_answer(run) for run in runs]
    return file_bytes(answers[0] if len(answers) == 1 else answers).decode()


def _answer(run: JudgedRun) -> JsonValue:
    result = run.result
    if result is None:
        error = run.error or UnreadableError("the run was not read", where=run.path, mend="Look at it alone.")
        result = ValidationResult.refused(run.path.rpartition("/")[2], error)
    return plain(result.model_copy(update={"path": run.name}))
