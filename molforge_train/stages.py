"""The steps of a run: an evaluation before, training, an evaluation after; each is left out when it was done before."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from molforge_eval import layout
from molforge_eval.canonical import file_bytes
from molforge_eval.play import run_evaluation
from molforge_eval.policies import Loading, PolicySpec, open_policy
from molforge_eval.records.evaluation import EpisodeRecord, Evaluation, EvaluationPlan
from molforge_eval.records.manifest import Configuration, RunManifest
from molforge_eval.sealing import write_whole
from molforge_eval.training_reward import phase_at
from molforge_train.checkpoints import Checkpoint, check_loaded, checkpoint_folder, mark_whole
from molforge_train.delivery import export_adapter
from molforge_train.errors import RunFailedError
from molforge_train.host_callback import Hooks, StopRequest, host_callback
from molforge_train.host_trainer import build_trainer
from molforge_train.policy import Place, Policy, load_policy, weights_digest
from molforge_train.progress import Progress, TrainingTable, warn
from molforge_train.prompts import prompt_rows
from molforge_train.ranks import ALONE, Ranks
from molforge_train.recording import RolloutLog, read_clock
from molforge_train.rewards import EnvironmentBrokenError, EpisodeReward
from molforge_train.run_record import RunRecord
from molforge_train.tool_environment import PlayedEnvironment, tool_environment
from molforge_train.trainer_log import TrainerLog
from molforge_train.watch import SignalWatch, full_disk

Say = Callable[[str], None]


class Stage(NamedTuple):
    """What the steps of a run share."""

    configuration: Configuration
    folder: Path
    record: RunRecord
    plan: EvaluationPlan
    policy: Policy
    place: Place
    stop: StopRequest
    quiet: bool
    say: Say
    start: Checkpoint | None = None
    """What training goes on from; `None` begins with the start adapter."""
    resumes: int = 0
    """How often the run went on after a stop."""
    ranks: Ranks = ALONE
    """The processes that train together; this one is the first."""


class Order(NamedTuple):
    """What the first process tells the others to train."""

    configuration: Configuration
    place: Place
    folder: Path
    start: Checkpoint | None


def carry_out(stage: Stage) -> None:
    """Do what is left to do."""
    settings, record, folder = stage.configuration, stage.record, stage.folder
    if settings.run_before_eval and not (folder / layout.BEFORE).exists():
        _evaluate(stage, settings.sft_adapter_path, "before training", layout.BEFORE)
    if record.manifest.output_adapter is None:
        _optimise(stage)
    else:
        stage.ranks.hear_first(None)
    _check_learned(record.manifest)
    if settings.run_after_eval and not stage.stop.is_wanted and not (folder / layout.AFTER).exists():
        _evaluate(stage, str(folder / layout.ADAPTER_FOLDER), "after training", layout.AFTER)


def _optimise(stage: Stage) -> None:
    settings, folder, record = stage.configuration, stage.folder, stage.record
    run_id = record.manifest.run_id
    table = TrainingTable(settings.max_steps, quiet=stage.quiet, done=0 if stage.start is None else stage.start.step)
    lines = RolloutLog(folder, run_id, resumes=stage.resumes)
    reward = EpisodeReward(settings, stage.policy.form, lines, SignalWatch(warn), ranks=stage.ranks)
    log = TrainerLog(folder / layout.TRAINER_LOG, run_id, read_clock)
    checkpoints = checkpoint_folder(folder)

    now = {"step": 0 if stage.start is None else stage.start.step}

    def begin(model: Any) -> None:
        if stage.start is not None:
            check_loaded(model, stage.start)

    def show(step: int) -> None:
        # A run that is killed leaves no last word: what the manifest says is the last step that ended.
        record.update(steps_completed=step, non_finite_steps=log.non_finite_steps)
        now["step"] = step
        table.show(step, reward.figures)
        stage.stop.reason = stage.stop.reason or full_disk(folder)

    environment = _training_environment(settings, now)
    check_seeds(environment, prompt_rows(settings)[0])
    stage.ranks.hear_first(Order(settings, stage.place, folder, stage.start))
    hooks = Hooks(begin, show, lambda step: mark_whole(checkpoints, step, run_id))
    trainer = build_trainer(
        settings,
        stage.policy,
        environment=environment,
        reward=reward,
        callback=host_callback(log, stage.stop, hooks, steps_a_batch=settings.num_iterations, ranks=stage.ranks),
        checkpoints=checkpoints,
    )
    check_processes(trainer.accelerator.num_processes, stage.ranks)
    given = weights_digest(stage.policy.model)
    try:
        trainer.train(resume_from_checkpoint=None if stage.start is None else str(stage.start.folder))
    finally:
        record.update(
            steps_completed=trainer.state.global_step,
            training_seconds=log.elapsed_seconds,
            non_finite_steps=log.non_finite_steps,
        )
    stage.stop.is_patient = False
    stage.ranks.gather(None)
    record.update(output_adapter=export_adapter(stage.policy, record.manifest.configuration.base_model, folder))
    # A file in other words or another number type is another file though nothing was learned: the weights tell.
    if trainer.state.global_step >= settings.max_steps and weights_digest(stage.policy.model) == given:
        raise _unchanged(record.manifest)


def _training_environment(settings: Configuration, now: Mapping[str, int]) -> type[PlayedEnvironment]:
    """Make the environment of a run: its steps are paid by the phase of the step that `now` holds."""
    return tool_environment(
        settings.observation_length,
        read_clock,
        mode=lambda: phase_at(settings, now["step"]).reward_mode,
        has_noise=settings.assay_noise,
    )


def assist(ranks: Ranks, stop: StopRequest) -> None:
    """Train with the first process, as it says, when it has evaluated; nothing is written here.

    Args:
        ranks: The processes that train together.
        stop: Whether this one is asked to end.
    """
    order: Order | None = ranks.hear_first()
    if order is None:
        return
    settings, start = order.configuration, order.start
    policy = load_policy(settings, order.place)
    now = {"step": 0 if start is None else start.step}
    hooks = Hooks(lambda _: None, lambda step: now.update(step=step), lambda _: None)
    trainer = build_trainer(
        settings,
        policy,
        environment=_training_environment(settings, now),
        reward=EpisodeReward(settings, policy.form, None, ranks=ranks),
        callback=host_callback(None, stop, hooks, steps_a_batch=settings.num_iterations, ranks=ranks),
        checkpoints=checkpoint_folder(order.folder),
    )
    check_processes(trainer.accelerator.num_processes, ranks)
    trainer.train(resume_from_checkpoint=None if start is None else str(start.folder))
    ranks.gather(None)


def check_processes(counted: int, ranks: Ranks) -> None:
    """Refuse a launcher that the host trainer does not know: each process would learn for itself alone.

    Args:
        counted: Processes whose gradients the host averages.
        ranks: The processes that train together.

    Raises:
        RunFailedError: They are not as many.
    """
    if counted != ranks.size:
        raise RunFailedError(
            f"the launcher started {ranks.size} processes, and the host trainer averages the gradients of {counted}",
            where=f"process {ranks.rank} of {ranks.size}",
            mend="Start them by torchrun: docs/scale.md says how.",
        )


def _check_learned(manifest: RunManifest) -> None:
    given, made = manifest.input_adapter, manifest.output_adapter
    # A run that was stopped early may not have met an uneven group yet.
    is_over = manifest.steps_completed >= manifest.configuration.max_steps
    if is_over and given is not None and made is not None and given.sha256 == made.sha256:
        raise _unchanged(manifest)


def _unchanged(manifest: RunManifest) -> RunFailedError:
    made = "unknown" if manifest.output_adapter is None else manifest.output_adapter.sha256[:16]
    return RunFailedError(
        f"after {manifest.steps_completed} steps the adapter is the one that training began with",
        where=f"{layout.ADAPTER_WEIGHTS}, SHA-256 {made}",
        mend="Raise RL_LEARNING_RATE, and read the trainer log for groups whose rewards are all equal.",
    )


def check_seeds(environment: type[PlayedEnvironment], row: dict[str, Any]) -> None:
    """Reset two environments by one row: what a seed starts must be the same each time.

    Raises:
        EnvironmentBrokenError: They open with different texts.
    """
    made: list[Any] = [environment(), environment()]
    told = [instance.reset(**row) for instance in made]
    if told[0] != told[1]:
        raise EnvironmentBrokenError(
            f"two resets with seed {row['seed']} gave two observations",
            where=f"environment, scenario {row['scenario_id']}",
            mend="Use an environment that honours its seed: groups are compared on one start.",
        )


def _evaluate(stage: Stage, adapter: str | None, label: str, file: str) -> Evaluation:
    settings, record = stage.configuration, stage.record
    spec = PolicySpec("hf", settings.base_model, adapter)
    planned = sum(len(part.tasks) * len(part.seeds) for part in stage.plan.parts)
    progress = Progress(planned, quiet=stage.quiet, unit="episode")
    scores: list[float] = []

    def show(episode: EpisodeRecord) -> None:
        scores.append(episode.final_score or 0.0)
        progress.show(len(scores), f"{label}  mean final score {sum(scores) / len(scores):.3f}")

    player = open_policy(spec, Loading(device=settings.device))
    evaluation = run_evaluation(stage.plan, player, label, record.manifest.run_id, clock=read_clock, on_episode=show)
    write_whole(stage.folder / file, file_bytes(evaluation))
    del player
    gc.collect()
    if settings.device == "cuda":
        # What the episodes' caches took is held by torch, and an engine beside it asks for its share of what is free.
        import torch

        torch.cuda.empty_cache()
    for part in evaluation.summaries:
        stage.say(f"{label}: {part.part} mean final_score {_spelled(part.mean_final_score)}")
    return evaluation


def _spelled(score: float | None) -> str:
    return "unknown" if score is None else f"{score:.3f}"
