"""One training run from its settings to its sealed run directory.

Everything that can be refused is refused before the directory is made. From then on whatever happens is recorded: the
manifest says complete, interrupted or failed and why, and the directory is sealed in each case.
"""

from __future__ import annotations

import gc
import logging
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from molforge_env.command_line import EXIT_INTERRUPTED
from molforge_env.errors import MolForgeError
from molforge_eval import layout
from molforge_eval.canonical import file_bytes
from molforge_eval.model_loading import is_out_of_memory
from molforge_eval.plan import Limits, plan_digest, standard_plan
from molforge_eval.play import run_evaluation
from molforge_eval.policies import Loading, PolicySpec, open_policy
from molforge_eval.records.evaluation import EpisodeRecord, Evaluation, EvaluationPlan
from molforge_eval.records.manifest import Configuration, RunManifest
from molforge_eval.sealing import write_whole
from molforge_eval.weights import base_model_digest
from molforge_train.adapter_search import adapter_folder
from molforge_train.config import Resolved, shipped_path
from molforge_train.delivery import copy_run, export_adapter, finish_run, identify_adapter
from molforge_train.host_callback import StopRequest, host_callback, listening
from molforge_train.host_trainer import build_trainer
from molforge_train.policy import Policy, choose_place, load_policy
from molforge_train.preflight import check_packages, run_folder
from molforge_train.progress import Progress
from molforge_train.provenance import scrubbed
from molforge_train.recording import RolloutLog, read_clock
from molforge_train.rewards import EpisodeReward
from molforge_train.run_record import RunRecord, first_manifest, run_id_of
from molforge_train.tool_environment import tool_environment
from molforge_train.trainer_log import TrainerLog

Say = Callable[[str], None]
_SHOWN_ERROR = 500


class RunInterruptedError(MolForgeError):
    """A signal ended the run before its last step."""

    exit_code = EXIT_INTERRUPTED


class RunFailedError(MolForgeError):
    """Training broke off; what was recorded until then is sealed."""


class FinishedRun(NamedTuple):
    """Where a run stands."""

    folder: Path
    archive: Path
    copy: Path | None
    manifest: RunManifest


class Stage(NamedTuple):
    """What the steps of a run share."""

    configuration: Configuration
    folder: Path
    record: RunRecord
    plan: EvaluationPlan
    policy: Policy
    stop: StopRequest
    quiet: bool
    say: Say


def train(resolved: Resolved, *, quiet: bool, say: Say) -> FinishedRun:
    """Train, evaluate before and after, and leave a sealed run directory.

    Args:
        resolved: Settings that the preflight has passed.
        quiet: No progress on standard error.
        say: Gets lines for standard output.

    Raises:
        RunInterruptedError: A signal ended it; the directory is sealed.
        RunFailedError: It broke off; the directory is sealed.
        MolForgeError: It was refused and nothing was written, or the copy failed.
    """
    check_packages()
    quieten_libraries()
    place = choose_place(resolved.configuration.device, resolved.configuration.dtype)
    settings = resolved.configuration.model_copy(update={"device": place.device, "dtype": place.dtype})
    for line in opening_lines(settings, place.accelerator):
        say(line)
    try:
        policy = load_policy(settings, place)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise RunFailedError(
            "out of memory while the model was loaded; nothing was written",
            where=f"configuration key base_model, {settings.base_model}",
            mend="Use a smaller base model, or a device with more memory.",
        ) from None
    started_at = read_clock()
    run_id = run_id_of(settings, started_at)
    plan = evaluation_plan(settings, run_id)
    folder = run_folder(settings)
    manifest = first_manifest(
        Resolved(settings, resolved.sources),
        place,
        run_id=run_id,
        started_at=started_at,
        plan_sha256=plan_digest(plan),
    )
    (folder / "logs").mkdir(parents=True)
    write_whole(folder / layout.PLAN, file_bytes(plan))
    record = RunRecord(folder, manifest)
    base = Path(shipped_path(settings.base_model))
    adapter = settings.sft_adapter_path
    record.update(
        trainable_parameters=policy.trainable,
        total_parameters=policy.total,
        base_model_sha256=base_model_digest(base) if base.is_dir() else None,
        input_adapter=None if adapter is None else identify_adapter(adapter_folder(adapter), adapter),
    )
    with listening() as stop:
        failure = _carry_out(Stage(settings, folder, record, plan, policy, stop, quiet, say))
    gc.collect()
    archive = _seal(folder, record, failure)
    copy = _copy(folder, archive, settings.drive_output_dir, failure)
    if failure is not None:
        raise failure
    return FinishedRun(folder, archive, copy, record.manifest)


def evaluation_plan(settings: Configuration, run_id: str) -> EvaluationPlan:
    """Plan the evaluations of a run: the same limits and interface as in training, strict rewards."""
    return standard_plan(
        run_id=run_id,
        seeds=settings.eval_seeds,
        observation_length=settings.observation_length,
        limits=Limits(settings.max_new_tokens, settings.max_completion_length, settings.turn_limit),
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=settings.top_k,
    )


def opening_lines(settings: Configuration, accelerator: str | None = None) -> list[str]:
    """Say what is trained, from what, by which settings and where."""
    device = f"{settings.device} {accelerator or ''}".strip()
    return [
        f"model          {settings.base_model}",
        f"adapter        {settings.sft_adapter_path or 'a new one'}",
        f"preset         {settings.preset}, seed {settings.seed}",
        f"device         {device}, {settings.dtype}",
    ]


def _carry_out(stage: Stage) -> MolForgeError | None:
    """Run the three steps; whatever breaks becomes a status of the manifest and an error to raise after sealing."""
    settings, record = stage.configuration, stage.record
    try:
        _train_between_evaluations(stage)
    except KeyboardInterrupt:
        return _interrupted(stage)
    except MolForgeError as error:
        _note(record, status="failed", status_reason=scrubbed(error.what))
        return error
    except Exception as error:  # noqa: BLE001 - the run's boundary: what was recorded must be sealed, whatever broke
        text = scrubbed(" ".join(f"{type(error).__name__}: {error}".split()))[:_SHOWN_ERROR]
        if is_out_of_memory(error):
            text = f"out of memory after step {record.manifest.steps_completed} of {settings.max_steps}"
        _note(record, status="failed", status_reason=text)
        return _failure(text, stage, error)
    if stage.stop.signal_name is not None:
        return _interrupted(stage)
    record.update(status="complete")
    return None


def _train_between_evaluations(stage: Stage) -> None:
    settings = stage.configuration
    if settings.run_before_eval:
        _evaluate(stage, settings.sft_adapter_path, "before training", layout.BEFORE)
    _optimise(stage)
    if settings.run_after_eval and stage.stop.signal_name is None:
        _evaluate(stage, str(stage.folder / layout.ADAPTER_FOLDER), "after training", layout.AFTER)


def _optimise(stage: Stage) -> None:
    settings, folder, record = stage.configuration, stage.folder, stage.record
    run_id = record.manifest.run_id
    reward = EpisodeReward(settings, stage.policy.form, RolloutLog(folder, run_id))
    log = TrainerLog(folder / layout.TRAINER_LOG, run_id, read_clock)
    progress = Progress(settings.max_steps, quiet=stage.quiet)

    def show(step: int) -> None:
        # A run that is killed leaves no last word: what the manifest says is the last step that ended.
        record.update(steps_completed=step)
        progress.show(step, reward.figures)

    callback = host_callback(log, stage.stop, on_step=show)
    with _checkpoint_folder(stage) as checkpoints:
        trainer = build_trainer(
            settings,
            stage.policy,
            environment=tool_environment(settings.observation_length, read_clock),
            reward=reward,
            callback=callback,
            checkpoints=checkpoints,
        )
        began = time.perf_counter()
        try:
            trainer.train()
        finally:
            stage.stop.in_training = False
            record.update(
                steps_completed=trainer.state.global_step,
                training_seconds=round(time.perf_counter() - began, 3),
                non_finite_steps=log.non_finite_steps,
            )
    record.update(output_adapter=export_adapter(stage.policy, record.manifest.configuration.base_model, folder))


def _evaluate(stage: Stage, adapter: str | None, label: str, file: str) -> Evaluation:
    settings, record = stage.configuration, stage.record
    spec = PolicySpec("hf", settings.base_model, adapter)
    planned = sum(len(part.tasks) * len(part.seeds) for part in stage.plan.parts)
    progress = Progress(planned, quiet=stage.quiet)
    scores: list[float] = []

    def show(episode: EpisodeRecord) -> None:
        scores.append(episode.final_score or 0.0)
        progress.show(len(scores), f"{label}  mean final score {sum(scores) / len(scores):.3f}")

    player = open_policy(spec, Loading(device=settings.device))
    evaluation = run_evaluation(stage.plan, player, label, record.manifest.run_id, clock=read_clock, on_episode=show)
    write_whole(stage.folder / file, file_bytes(evaluation))
    del player
    gc.collect()
    for part in evaluation.summaries:
        stage.say(f"{label}: {part.part} mean final_score {_spelled(part.mean_final_score)}")
    return evaluation


@contextmanager
def _checkpoint_folder(stage: Stage) -> Iterator[Path]:
    # Checkpoints hold optimizer state and pickles: they are no evidence and stand outside the run directory.
    if stage.configuration.save_steps:
        yield stage.folder.with_name(f"{stage.folder.name}.checkpoints")
        return
    with tempfile.TemporaryDirectory() as scratch:
        yield Path(scratch)


def _seal(folder: Path, record: RunRecord, failure: MolForgeError | None) -> Path:
    try:
        record.update(ended_at=read_clock())
        return finish_run(folder)
    except Exception as error:
        raise _unsealed(folder, record, failure, error) from error


def _unsealed(folder: Path, record: RunRecord, failure: MolForgeError | None, error: Exception) -> MolForgeError:
    """Say that the seal is missing; what has broken the run before is told first, not what followed from it."""
    why = scrubbed(" ".join(str(error).split()))[:_SHOWN_ERROR] or type(error).__name__
    mend = f"Make room or mend what is named, and run it again; its records stand there unsealed ({why})."
    if failure is not None:
        return type(failure)(failure.what, where=failure.where, mend=mend)
    what = f"the run could not be sealed: {why}"
    _note(record, status="failed", status_reason=what)
    return RunFailedError(what, where=scrubbed(str(folder)), mend="Make room or mend what is named, and run it again.")


def _copy(folder: Path, archive: Path, drive: str | None, failure: MolForgeError | None) -> Path | None:
    if drive is None:
        return None
    try:
        return copy_run(folder, archive, Path(drive).expanduser())
    except MolForgeError as error:
        raise error if failure is None else failure from error


def _note(record: RunRecord, **fields: Any) -> None:
    # On a full disk the manifest stays at `running`, which is no claim of an end.
    with suppress(OSError):
        record.update(**fields)


def _interrupted(stage: Stage) -> RunInterruptedError:
    done, planned = stage.record.manifest.steps_completed, stage.configuration.max_steps
    reason = f"{stage.stop.signal_name or 'interrupt'} after step {done} of {planned}"
    # A second Ctrl-C may end the sealing too; an interrupted run without its end would contradict itself.
    _note(stage.record, status="interrupted", status_reason=reason, ended_at=read_clock())
    return RunInterruptedError(
        f"the run was ended by {reason}",
        where=scrubbed(str(stage.folder)),
        mend="Its records are sealed as interrupted; start another run for a complete one.",
    )


def _failure(text: str, stage: Stage, error: Exception) -> RunFailedError:
    mend = "Its records are sealed as failed; run it again with MOLFORGE_TRACEBACK=1 and report the output."
    if is_out_of_memory(error):
        mend = "Lower MAX_COMPLETION_LENGTH or RL_BATCH_SIZE, and raise RL_GRAD_ACCUM by as much."
    elif _is_out_of_space(error):
        mend = "Make room on the disk, and run it again."
    failure = RunFailedError(text, where=scrubbed(str(stage.folder)), mend=mend)
    # The cause holds every frame and with it the memory that sealing needs now.
    failure.__cause__ = None if is_out_of_memory(error) else error
    return failure


def _is_out_of_space(error: Exception) -> bool:
    return "no space left" in str(error).lower() or "quota exceeded" in str(error).lower()


def _spelled(score: float | None) -> str:
    return "unknown" if score is None else f"{score:.3f}"


def quieten_libraries() -> None:
    """Switch off the bars and notes of the host libraries."""
    # Their bars and notes would stand between the command's own lines.
    import datasets
    import transformers

    # A hub that cannot be reached is told once, in three lines, not at every try.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    datasets.disable_progress_bars()
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    warnings.filterwarnings("ignore", message=".*environment_factory.*", category=UserWarning)
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")
    # The base model is named as it is found from anywhere, which peft takes for a path of this folder.
    warnings.filterwarnings("ignore", message="Could not find a config file", category=UserWarning)
