"""Whether the run was made with the settings that its manifest states (rule R4), as far as records can tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen
from molforge_eval.findings import Finding
from molforge_eval.records import Configuration, EvaluationPlan, RunManifest
from molforge_eval.run_directory import RunDirectory
from molforge_eval.training_reward import phase_at

_POLYNOMIAL_END = 1e-7
_ROOT_SCALE = 10_000
"""Steps that the host's schedule by the inverse root counts from when there is no warm-up."""

_SCHEDULES: Mapping[str, Callable[[float, int, int], float]] = {
    "constant": lambda rate, _done, _steps: rate,
    "constant_with_warmup": lambda rate, _done, _steps: rate,
    "linear": lambda rate, done, steps: rate * (1.0 - done / steps),
    "cosine": lambda rate, done, steps: rate * 0.5 * (1.0 + math.cos(math.pi * done / steps)),
    "polynomial": lambda rate, done, steps: (rate - _POLYNOMIAL_END) * (1.0 - done / steps) + _POLYNOMIAL_END,
    "inverse_sqrt": lambda rate, done, _steps: rate / math.sqrt(1.0 + done / _ROOT_SCALE),
}
"""Learning rate by peak rate, steps done and steps in all, as the host has it without warm-up."""
_ROOM = 1e-6


def check(run: RunDirectory) -> Iterator[Finding]:
    """Hold the settings of the manifest to plan, logs and files."""
    manifest = run.manifest
    if manifest is None:
        return
    settings = manifest.configuration
    yield from _check_settings(run, manifest)
    if run.plan is not None:
        yield from _check_plan(settings, run.plan)
    yield from _check_batches(run, manifest)
    yield from _check_rows(run, settings)
    yield from _check_learning_rate(run, settings)


def _check_settings(run: RunDirectory, manifest: RunManifest) -> Iterator[Finding]:
    settings = manifest.configuration
    if manifest.run_name != settings.run_name:
        yield _unlike("run_name", settings.run_name, f"the run is named {seen(manifest.run_name)}")
    if manifest.seeds.get("training", settings.seed) != settings.seed:
        yield _unlike("seed", settings.seed, f"seeds has {manifest.seeds['training']}")
    for key, path in (("run_before_eval", layout.BEFORE), ("run_after_eval", layout.AFTER)):
        if not getattr(settings, key) and path in run.files:
            yield _unlike(key, value=False, what=f"{path} is there")
    yield from _check_origin(run, manifest)
    modes = run.rollouts.select("reward_mode", "trainer_step").unique().sort("trainer_step", "reward_mode")
    told: set[str] = set()
    for mode, step in modes.iter_rows():
        planned = phase_at(settings, step).reward_mode
        if mode != planned and mode not in told:
            told.add(mode)
            yield _unlike("reward_mode", planned, f"rollout lines have {seen(mode)}")


def _check_origin(run: RunDirectory, manifest: RunManifest) -> Iterator[Finding]:
    """What went in, and on what it was trained."""
    settings, given = manifest.configuration, manifest.input_adapter
    named = settings.sft_adapter_path
    if (named is None) != (given is None):
        yield _unlike("sft_adapter_path", named, f"input_adapter is {'absent' if given is None else seen(given.path)}")
    rows = run.trainer_log
    if settings.beta == 0.0 and "kl" in rows.columns and rows["kl"].null_count() < len(rows):
        yield _unlike("beta", settings.beta, "the trainer log has the key kl, which is logged only where beta is not 0")
    if settings.device.startswith("cuda") and manifest.hardware.accelerator is None:
        yield _unlike("device", settings.device, "hardware names no accelerator")


def _check_plan(settings: Configuration, plan: EvaluationPlan) -> Iterator[Finding]:
    """Training and evaluation must read the same texts, under the same limits."""
    pairs: list[tuple[str, Any, Any]] = [
        ("turn_limit", settings.turn_limit, plan.turn_limit),
        ("observation_length", settings.observation_length, plan.observation_length),
    ]
    for part in plan.parts:
        decoding = part.decoding
        pairs.append(("max_new_tokens", settings.max_new_tokens, decoding.max_new_tokens))
        pairs.append(("max_completion_length", settings.max_completion_length, decoding.max_completion_length))
        if part.name == "sampled":
            pairs.append(("eval_seeds", settings.eval_seeds, len(part.seeds)))
            pairs += [
                (key, getattr(settings, key), getattr(decoding, key)) for key in ("temperature", "top_p", "top_k")
            ]
    for key, trained, planned in dict.fromkeys(pairs):
        if trained != planned:
            what = f"{key} is {seen(trained)} in training and {seen(planned)} in the evaluation"
            yield finding("INTERFACE_DIFFERS", what, file=layout.MANIFEST, pointer=f"/configuration/{key}")


def _check_batches(run: RunDirectory, manifest: RunManifest) -> Iterator[Finding]:
    """Episodes come in batches of one size, and each batch serves a set number of steps."""
    settings = manifest.configuration
    ends = run.rollouts.select("trainer_step", "ended_by").filter(pl.col("ended_by").is_not_null())
    sizes = ends.group_by("trainer_step").len().sort("trainer_step")
    # A resumed run generates anew from the step that it went on from.
    if not len(sizes) or len(run.trainer_log.filter(pl.col("type") == "resume")):
        return
    size = settings.batch_size * settings.gradient_accumulation * manifest.processes
    usual = int(sizes["len"].mode().sort()[-1])
    if size and usual != size:
        what = f"a step generated {usual} episodes"
        yield _unlike("batch_size", settings.batch_size, f"{what}, batch size and accumulation make {size}")
    gaps = set(sizes["trainer_step"].diff().drop_nulls().to_list())
    if gaps and gaps != {settings.num_iterations}:
        what = f"episodes were generated every {min(gaps)} steps"
        yield _unlike("num_iterations", settings.num_iterations, what)


def _check_rows(run: RunDirectory, settings: Configuration) -> Iterator[Finding]:
    """Rows stand at the multiples of `logging_steps`; only where training stopped may one stand elsewhere."""
    rows = run.trainer_log.filter(pl.col("type").is_in(["train", "resume", "summary"]))
    every = max(1, settings.logging_steps)
    is_odd = (pl.col("type") == "train") & (pl.col("type").shift(-1) == "train") & (pl.col("step") % every != 0)
    odd = rows.filter(is_odd)
    if len(odd):
        what = f"line {odd['line'][0]} of the trainer log is a row of step {odd['step'][0]}"
        yield _unlike("logging_steps", settings.logging_steps, what)


def _check_learning_rate(run: RunDirectory, settings: Configuration) -> Iterator[Finding]:
    rows = run.trainer_log.filter(pl.col("type") == "train")
    schedule = _SCHEDULES.get(settings.lr_scheduler)
    if schedule is None:
        what = f"schedule {seen(settings.lr_scheduler)} is none of {', '.join(_SCHEDULES)}"
        yield finding("SCHEDULE_UNKNOWN", what, file=layout.MANIFEST, pointer="/configuration/lr_scheduler")
        return
    if not settings.max_steps or rows.schema.get("learning_rate") != pl.Float64:
        return
    peak, steps = settings.learning_rate, settings.max_steps
    for line, step, rate in rows.select("line", "step", "learning_rate").drop_nulls().iter_rows():
        # A version of the host logs the rate of the step, another that of the next one.
        rates = [schedule(peak, min(done, steps), steps) for done in (step - 1, step)]
        if not any(abs(rate - wanted) <= _ROOM * peak for wanted in rates):
            what = f"learning_rate is {rate} at step {step}, schedule {settings.lr_scheduler} gives {rates[0]}"
            yield finding("SCHEDULE_DIFFERS", what, file=layout.TRAINER_LOG, line=line, pointer="/learning_rate")


def _unlike(key: str, value: object, what: str) -> Finding:
    text = f"{key} is {seen(value)}, {what}"
    return finding("CONFIGURATION_DIFFERS", text, file=layout.MANIFEST, pointer=f"/configuration/{key}")
