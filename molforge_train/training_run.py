"""One training run from its settings to its sealed run directory, begun or gone on with.

Everything that can be refused is refused before the directory is made. From then on whatever happens is recorded: the
manifest says complete, interrupted or failed and why, and the directory is sealed in each case.
"""

from __future__ import annotations

import gc
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from molforge_env.command_line import report_error
from molforge_env.errors import MolForgeError, UsageError
from molforge_eval import layout
from molforge_eval.canonical import file_bytes
from molforge_eval.model_loading import find_held, is_out_of_memory
from molforge_eval.plan import Limits, plan_digest, standard_plan
from molforge_eval.records.evaluation import EvaluationPlan
from molforge_eval.records.manifest import AdapterIdentity, Configuration, RunManifest
from molforge_eval.sealing import write_whole
from molforge_eval.weights import base_model_digest
from molforge_train import stages
from molforge_train.adapter_search import adapter_folder
from molforge_train.checkpoints import checkpoint_folder, remove_checkpoints
from molforge_train.config import Resolved, shipped_path
from molforge_train.delivery import Delivery, deliver, finish_run, identify_adapter, prepare_run
from molforge_train.errors import RunFailedError, RunInterruptedError
from molforge_train.host_callback import StopRequest, listening
from molforge_train.host_libraries import check_libraries
from molforge_train.memory_estimate import levers
from molforge_train.policy import Place, Policy, choose_place, load_policy
from molforge_train.preflight import check_engines, run_folder
from molforge_train.provenance import scrubbed
from molforge_train.ranks import ALONE, Ranks, is_lost
from molforge_train.recording import read_clock
from molforge_train.reopening import Reopened, check_open, is_finished, reopen
from molforge_train.run_record import RunRecord, first_manifest, run_id_of, writing_alone
from molforge_train.stages import Say, Stage, carry_out

_SHOWN_ERROR = 500
_ONE_ACT = 3.0
"""Seconds in which the signals of a terminal and of a launcher are one."""


class FinishedRun(NamedTuple):
    """Where a run stands."""

    folder: Path
    archive: Path
    delivery: Delivery
    manifest: RunManifest


def train(resolved: Resolved, *, quiet: bool, say: Say, ranks: Ranks = ALONE) -> FinishedRun:
    """Train, evaluate before and after, and leave a sealed run directory.

    Args:
        resolved: Settings that the preflight has passed.
        quiet: No progress on standard error.
        say: Gets lines for standard output.
        ranks: The processes that train together; this one is the first.

    Raises:
        RunInterruptedError: A signal ended it; the directory is sealed.
        RunFailedError: It broke off; the directory is sealed.
        MolForgeError: It was refused and nothing was written.
    """
    check_libraries(engine=resolved.configuration)
    place = choose_place(resolved.configuration.device, resolved.configuration.dtype, ranks.size)
    ranks = ranks.join(place.device)
    settings = resolved.configuration.model_copy(update={"device": place.device, "dtype": place.dtype})
    check_engines(settings)
    for line in opening_lines(settings, place.accelerator, resolved.preset_reason, ranks.size):
        say(line)
    policy = _load(settings, place)
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
    base, given = _identify(settings)
    record.update(
        trainable_parameters=policy.trainable,
        total_parameters=policy.total,
        base_model_sha256=base,
        input_adapter=given,
        processes=ranks.size,
    )
    with writing_alone(folder), _listening(ranks) as stop:
        return _conduct(Stage(settings, folder, record, plan, policy, place, stop, quiet, say, ranks=ranks))


def assist(configuration: Configuration, ranks: Ranks) -> None:
    """Play and learn in a process that does not write, as the first one says.

    Args:
        configuration: Names the device.
        ranks: The processes that train together.

    Raises:
        RunFailedError: Another process ended.
        KeyboardInterrupt: A signal ended this one.
    """
    check_libraries(engine=configuration)
    place = choose_place(configuration.device, configuration.dtype, ranks.size)
    with _listening(ranks) as stop:
        try:
            stages.assist(ranks.join(place.device), stop)
        except RuntimeError as error:
            if not is_lost(error):
                raise
            raise RunFailedError(
                "another process of the run has ended",
                where=f"process {ranks.rank} of {ranks.size}",
                mend="Read what the others said.",
            ) from error


def _listening(ranks: Ranks) -> AbstractContextManager[StopRequest]:
    return listening(_ONE_ACT if ranks.size > 1 else 0.0, tells=ranks.is_first)


def resume(folder: Path, *, quiet: bool, say: Say, ranks: Ranks = ALONE) -> FinishedRun:
    """Go on with a run that was stopped, from its last checkpoint, with the same adapter, steps, seeds and logs.

    Args:
        folder: The run directory.
        quiet: No progress on standard error.
        say: Gets lines for standard output.
        ranks: The processes that train together; this one is the first.

    Raises:
        UsageError: The run is complete, another process writes it, or model or adapter are not those it began with.
        MolForgeError: As for `train`.
    """
    with writing_alone(folder):
        record = RunRecord.read(folder)
        if is_finished(folder, record.manifest):
            # One that was killed after its seal may have left them.
            remove_checkpoints(checkpoint_folder(folder))
        check_open(folder, record.manifest)
        settings = record.manifest.configuration
        check_libraries(engine=settings)
        check_engines(settings)
        if record.manifest.processes != ranks.size:
            began = record.manifest.processes
            raise UsageError(
                f"{began} processes began the run, and {ranks.size} would go on with it",
                where=f"{folder.name}/{layout.MANIFEST}, processes",
                mend=f"Start {began}: docs/scale.md says how.",
            )
        place = choose_place(settings.device, settings.dtype, ranks.size)
        ranks = ranks.join(place.device)
        for line in opening_lines(settings, place.accelerator, processes=ranks.size):
            say(line)
        policy = _load(settings, place)
        # A model of the hub may be fetched only when it is loaded, and is known by its files from then on.
        _check_origin(settings, record.manifest)
        plan = EvaluationPlan.model_validate_json((folder / layout.PLAN).read_bytes())
        reopened = reopen(folder, record)
        say(_going_on(reopened))
        start, resumes = reopened.start, reopened.resumes
        with _listening(ranks) as stop:
            return _conduct(
                Stage(settings, folder, record, plan, policy, place, stop, quiet, say, start, resumes, ranks)
            )


def _conduct(stage: Stage) -> FinishedRun:
    failure = _carry_out(stage)
    gc.collect()
    folder, record = stage.folder, stage.record
    # A launcher ends the others' first process when one of them has failed, and sealing is short.
    stage.stop.is_patient = True
    archive = _seal(folder, record, failure)
    stage.stop.is_patient = False
    settings = stage.configuration
    delivery = deliver(folder, archive, drive=settings.drive_output_dir, repository=settings.hf_output_repo)
    if failure is not None:
        for fault in delivery.faults:
            report_error(fault)
        raise failure
    remove_checkpoints(checkpoint_folder(folder))
    return FinishedRun(folder, archive, delivery, record.manifest)


def _load(settings: Configuration, place: Place) -> Policy:
    try:
        return load_policy(settings, place)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        is_wide = settings.device == "cuda" and not settings.load_in_4bit
        smaller = "a smaller base model, LOAD_IN_4BIT=1," if is_wide else "a smaller base model"
        raise RunFailedError(
            "out of memory while the model was loaded; nothing was written",
            where=f"configuration key base_model, {settings.base_model}",
            mend=f"Use {smaller} or a larger device; --dry-run estimates what it takes.",
        ) from None


def _identify(settings: Configuration) -> tuple[str | None, AdapterIdentity | None]:
    """Name base model and start adapter by their content."""
    base = find_held(shipped_path(settings.base_model))
    adapter = settings.sft_adapter_path
    given = None if adapter is None else identify_adapter(adapter_folder(adapter), adapter)
    return None if base is None else base_model_digest(base), given


def _check_origin(settings: Configuration, manifest: RunManifest) -> None:
    base, given = _identify(settings)
    if base is not None and manifest.base_model_sha256 is not None and base != manifest.base_model_sha256:
        key, what = "base_model", f"the base model {settings.base_model} is not the one that the run began with"
    elif given is not None and manifest.input_adapter is not None and given.sha256 != manifest.input_adapter.sha256:
        key, what = "sft_adapter_path", f"the adapter {given.path} is not the one that the run began with"
    else:
        return
    raise UsageError(what, where=f"configuration key {key}", mend="Put it back, in the folder where the run began.")


def _going_on(reopened: Reopened) -> str:
    if reopened.is_trained:
        return "resume         after training"
    step = 0 if reopened.start is None else reopened.start.step
    return f"resume         from step {step}; {reopened.superseded} episodes after it are superseded"


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


def opening_lines(
    settings: Configuration, accelerator: str | None = None, preset_reason: str = "", processes: int = 1
) -> list[str]:
    """Say what is trained, from what, by which settings and why by those, and where."""
    why = f" ({preset_reason})" if preset_reason else ""
    device = f"{settings.device} {accelerator or ''}".strip()
    return [
        f"model          {settings.base_model}",
        f"adapter        {settings.sft_adapter_path or 'a new one'}",
        f"preset         {settings.preset}, seed {settings.seed}{why}",
        f"device         {device}, {settings.dtype}" + (f", {processes} processes" if processes > 1 else ""),
    ]


def _carry_out(stage: Stage) -> MolForgeError | None:
    """Run the three steps; whatever breaks becomes a status of the manifest and an error to raise after sealing."""
    settings, record = stage.configuration, stage.record
    try:
        carry_out(stage)
    except KeyboardInterrupt:
        return _interrupted(stage)
    except Exception as error:  # noqa: BLE001 - the run's boundary: what was recorded must be sealed, whatever broke
        is_short = _is_short_of_memory(error)
        if isinstance(error, MolForgeError) and not is_short:
            _note(record, status="failed", status_reason=scrubbed(error.what), ended_at=read_clock())
            return error
        text = scrubbed(" ".join(f"{type(error).__name__}: {error}".split()))[:_SHOWN_ERROR]
        if is_short:
            text = f"out of memory after step {record.manifest.steps_completed} of {settings.max_steps}"
        elif is_lost(error):
            text = f"another of the {stage.ranks.size} processes ended"
        _note(record, status="failed", status_reason=text, ended_at=read_clock())
        return _failure(text, stage, error)
    return _interrupted(stage) if stage.stop.is_wanted else None


def _seal(folder: Path, record: RunRecord, failure: MolForgeError | None) -> Path:
    try:
        prepare_run(folder)
        # Complete is the last word but the seal: a run that is killed before it has not ended.
        status = "complete" if failure is None else record.manifest.status
        record.update(status=status, ended_at=read_clock())
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


def _note(record: RunRecord, **fields: Any) -> None:
    # On a full disk the manifest stays at `running`, which is no claim of an end.
    with suppress(OSError):
        record.update(**fields)


def _interrupted(stage: Stage) -> RunInterruptedError:
    done, planned = stage.record.manifest.steps_completed, stage.configuration.max_steps
    reason = f"{stage.stop.signal_name or stage.stop.reason or 'interrupt'} after step {done} of {planned}"
    # A second Ctrl-C may end the sealing too; an interrupted run without its end would contradict itself.
    _note(stage.record, status="interrupted", status_reason=reason, ended_at=read_clock())
    return RunInterruptedError(
        f"the run was ended by {reason}",
        where=scrubbed(str(stage.folder)),
        mend=f"Its records are sealed as interrupted; go on with: molforge-train resume {scrubbed(str(stage.folder))}",
    )


def _failure(text: str, stage: Stage, error: Exception) -> RunFailedError:
    mend = "Its records are sealed as failed; run it again with MOLFORGE_TRACEBACK=1 and report the output."
    settings = stage.configuration
    if _is_short_of_memory(error):
        smaller = levers(settings, is_gpu=settings.device == "cuda")
        mend = f"Its records are sealed as failed; begin a smaller one with {smaller}."
    elif _is_out_of_space(error):
        mend = "Make room on the disk, and run it again."
    elif is_lost(error):
        mend = "Read what it said, and go on with `molforge-train resume`, started by the same launcher."
    failure = RunFailedError(text, where=scrubbed(str(stage.folder)), mend=mend)
    # The cause holds every frame and with it the memory that sealing needs now.
    failure.__cause__ = None if _is_short_of_memory(error) else error
    return failure


def _is_short_of_memory(error: Exception) -> bool:
    # An evaluation says it in its own words, which name a flag of another command.
    return is_out_of_memory(error) or (error.__cause__ is not None and is_out_of_memory(error.__cause__))


def _is_out_of_space(error: Exception) -> bool:
    return "no space left" in str(error).lower() or "quota exceeded" in str(error).lower()
