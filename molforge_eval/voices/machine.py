"""Findings for a program: one JSON object a run, in the shape of `schemas/validation_result.schema.json`."""

from __future__ import annotations

from collections.abc import Sequence

from molforge_eval.canonical import file_bytes, plain
from molforge_eval.validation_result import ValidationResult


def render(results: Sequence[ValidationResult], *, asked: int) -> str:
    """Spell results as JSON: one object when one run was asked for, a list when several were, however many answered."""
    value = plain(results[0]) if asked == 1 else [plain(result) for result in results]
    return file_bytes(value).decode()
