"""The summary, computed again from logs and evaluations (rule R4); a headline must be an evaluation's number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from molforge_eval import layout
from molforge_eval.canonical import plain
from molforge_eval.catalogue import finding, seen
from molforge_eval.checks.evaluations import compare_values, with_own_means
from molforge_eval.checks.rounding import agrees
from molforge_eval.findings import Finding
from molforge_eval.records import Evaluation
from molforge_eval.run_directory import RunDirectory
from molforge_eval.run_summary import count_rollouts, headline_of


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compute the summary again."""
    if run.summary is None:
        return
    recorded = plain(run.summary)
    expected: dict[str, Any] = {}
    if layout.ROLLOUTS in run.files:
        expected |= count_rollouts(run.rollouts)
    if layout.TRAINER_LOG in run.files:
        expected["latest_trainer_log"] = run.latest_trainer_row
    if run.manifest is not None:
        settings = run.manifest.configuration
        expected["run_name"] = run.manifest.run_name
        expected["base_model"] = settings.base_model
        expected["sft_adapter_path"] = settings.sft_adapter_path
    for key, value in expected.items():
        yield from compare_values(layout.SUMMARY, f"/{key}", recorded[key], value)
    for key, path, evaluation in (("eval_before", layout.BEFORE, run.before), ("eval_after", layout.AFTER, run.after)):
        # A file that is there and could not be read is named elsewhere; nothing follows from it for the summary.
        if evaluation is not None or path not in run.files:
            yield from _check_headline(key, recorded[key], evaluation)


def _check_headline(key: str, recorded: Mapping[str, Any], evaluation: Evaluation | None) -> Iterator[Finding]:
    stated = plain(headline_of(evaluation, key))
    for name in ("skipped", "label"):
        if recorded[name] != stated[name] and not (name == "label" and stated["skipped"]):
            yield _differs(key, name, recorded[name], stated[name])
    computed = stated if evaluation is None else plain(headline_of(with_own_means(evaluation), key))
    for name in ("average_final_score", "sampled_mean_final_score"):
        own, given, mean = recorded[name], stated[name], computed[name]
        # Either file may have rounded the mean, or neither, or both.
        if not agrees(own, given) and not (agrees(own, mean) and agrees(given, mean)):
            yield _differs(key, name, own, given)


def _differs(key: str, name: str, recorded: object, stated: object) -> Finding:
    what = f"{name} is {seen(recorded)}, the evaluation gives {seen(stated)}"
    return finding("HEADLINE_DIFFERS", what, file=layout.SUMMARY, pointer=f"/{key}/{name}")
