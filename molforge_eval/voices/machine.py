"""Findings for a program: one JSON object a run, in the shape of `schemas/validation_result.schema.json`."""

from __future__ import annotations

from collections.abc import Sequence

from molforge_eval.canonical import file_bytes, plain
from molforge_eval.validation_result import ValidationResult


def render(results: Sequence[ValidationResult]) -> str:
    """Spell results as JSON: one object for one run, a list for several."""
    value = plain(results[0]) if len(results) == 1 else [plain(result) for result in results]
    return file_bytes(value).decode()
