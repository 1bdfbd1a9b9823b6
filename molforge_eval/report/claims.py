"""The claims of the first page and how each stands, the untested ones among them.

A claim stands by a closed rule over the verdict, the level and the sentinel. Nothing is supported by its absence: what
was not looked at is `not tested`.
"""

from __future__ import annotations

from molforge_eval import layout
from molforge_eval.comparison import TaskComparison
from molforge_eval.records.manifest import RunManifest
from molforge_eval.report.evidence import Claim, LevelStatement, Sentinel, Standing, VerdictStatement
from molforge_eval.verdict import Outcome, Verdict

_BY_OUTCOME: dict[Outcome, Standing] = {
    "improved": "supported",
    "no change shown": "not shown",
    "regressed": "contradicted",
    "inconclusive": "unclear",
    "incomplete": "not tested",
    "withheld": "withheld",
}


def weigh_claims(
    *,
    statement: VerdictStatement,
    verdict: Verdict | None,
    level: LevelStatement,
    differences: int | None,
    is_foreign: bool,
    sentinel: Sentinel,
    manifest: RunManifest | None,
    gaps: int,
) -> tuple[Claim, ...]:
    """Say how each claim stands, in the order of the first page.

    Args:
        statement: The outcome of the verdict, and the suite that it is over.
        verdict: The verdict, or `None` when nothing could be judged.
        level: What checking has shown.
        differences: Values in which replay differed; `None` when nothing was replayed.
        is_foreign: The model wrote other words than the record, when it was asked.
        sentinel: Reward against score.
        manifest: Steps, adapters; `None` when it cannot be read.
        gaps: Trainer rows with a number that is not finite.
    """
    standing = _BY_OUTCOME[statement.outcome]
    withheld = statement.outcome == "withheld"
    return (
        Claim(key="score_rose", standing=standing),
        Claim(key="every_task_rose", standing="withheld" if withheld else _every_task(verdict)),
        Claim(key="reward_tracks_score", standing=_if_sound(_reward_tracks(sentinel), level)),
        Claim(key="training_happened", standing=_if_sound(_training(manifest, gaps), level)),
        Claim(key="scores_replayed", standing=_replayed(level, differences)),
        Claim(key="unseen_tasks", standing=standing if statement.suite == "holdout" else "not tested"),
        Claim(key="other_seeds", standing="not tested"),
        Claim(key="adapter_regenerates", standing=_regenerated(level, is_foreign=is_foreign)),
    )


def _if_sound(standing: Standing, level: LevelStatement) -> Standing:
    """Withhold what only the records speak for while they do not agree with each other."""
    is_sound = level.level is not None and level.level >= "E2"
    return standing if is_sound or standing not in {"supported", "partly"} else "withheld"


def _every_task(verdict: Verdict | None) -> Standing:
    tasks = () if verdict is None else verdict.tasks
    tested = [task for task in tasks if task.holm_p_value is not None]
    if verdict is None or not tested:
        return "not tested"
    rose = [task for task in tasks if _is_shown(task, verdict.alpha, sign=1)]
    if any(_is_shown(task, verdict.alpha, sign=-1) for task in tasks):
        return "contradicted"
    if len(tested) < len(tasks):
        return "unclear"
    if len(rose) == len(tasks):
        return "supported"
    return "partly" if rose else "not shown"


def _is_shown(task: TaskComparison, alpha: float, *, sign: int) -> bool:
    if task.holm_p_value is None or task.difference is None:
        return False
    return task.holm_p_value < alpha and sign * task.difference > 0


def _reward_tracks(sentinel: Sentinel) -> Standing:
    if sentinel.flagged:
        return "contradicted"
    if "unknown" in {sentinel.reward, sentinel.score}:
        return "not tested"
    return "supported" if sentinel.reward == sentinel.score == "rose" else "unclear"


def _training(manifest: RunManifest | None, gaps: int) -> Standing:
    if manifest is None or manifest.input_adapter is None or manifest.output_adapter is None:
        return "not tested"
    given, output = manifest.input_adapter, manifest.output_adapter
    if given.sha256 == output.sha256 or given.tensors_sha256 == output.tensors_sha256 is not None:
        return "contradicted"
    whole_run = manifest.status == "complete" and manifest.steps_completed >= manifest.configuration.max_steps
    return "supported" if whole_run and gaps == 0 else "partly"


def _replayed(level: LevelStatement, differences: int | None) -> Standing:
    if not level.replayed or differences is None:
        return "not tested"
    if differences:
        return "contradicted"
    return "supported" if level.level is not None and level.level >= "E3" else "unclear"


def _regenerated(level: LevelStatement, *, is_foreign: bool) -> Standing:
    if level.regenerated is None:
        return "not tested"
    if is_foreign:
        return "contradicted"
    if level.level != "E4":
        return "not shown"
    return "supported" if level.regenerated == len(layout.EVALUATIONS) else "partly"
