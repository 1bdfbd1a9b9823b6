"""Replay: every episode of a run played again in the laboratory, each alone and in any order, over processes.

What replay shows is level E3: rewards and scores follow from the recorded actions. It cannot show who chose them; where
a reader wishes it, the run's model is asked, which is level E4 and stands in `regeneration`.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from molforge_env import __version__
from molforge_env.fingerprint import backend_fingerprint
from molforge_env.tools import Moves
from molforge_eval import layout
from molforge_eval.catalogue import finding, short
from molforge_eval.findings import Finding
from molforge_eval.ledger import Ledger
from molforge_eval.limits import DEFAULT_LIMITS, Limits
from molforge_eval.records.manifest import RunManifest
from molforge_eval.regeneration import count_greedy, regenerate
from molforge_eval.regeneration_models import Wish
from molforge_eval.replay_lines import LinesTask, replay_lines
from molforge_eval.replay_record import RecordTask, replay_record
from molforge_eval.run_directory import RunDirectory, load
from molforge_eval.run_files import RunFiles
from molforge_eval.validate import conclude, count_evidence, examine, level_of
from molforge_eval.validation_result import ValidationResult

Task = RecordTask | LinesTask
Progress = Callable[[int, int], None]

_BATCH = 64
_EPISODES_A_WORKER = 1_000
"""A process more is worth its start from about so many episodes."""


class Replayed(NamedTuple):
    """What playing some episodes again gave."""

    findings: tuple[Finding, ...]
    episodes: int
    steps: int
    differing: int
    """Episodes with a difference."""


def verify(
    path: Path,
    *,
    workers: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
    wish: Wish | None = None,
    on_progress: Progress | None = None,
) -> ValidationResult:
    """Validate a run and play its episodes again, up to level E3; with its model up to E4.

    Args:
        path: The run directory or an archive of one.
        workers: Processes; `None` takes as many as the episodes are worth, at most one a core.
        limits: Bounds on what is read.
        wish: From [`open_wish`][molforge_eval.regeneration.open_wish], to have the model play again; `None` has not.
        on_progress: Called with episodes played and episodes in all.

    Raises:
        UnreadableError: The path is absent or holds nothing of a run.
        MissingDependencyError: RDKit cannot be imported.
        UsageError: The memory does not hold the model.
    """
    return verify_loaded(load(path, limits), workers=workers, wish=wish, on_progress=on_progress)


def verify_loaded(
    run: RunDirectory,
    *,
    workers: int | None = None,
    wish: Wish | None = None,
    on_progress: Progress | None = None,
) -> ValidationResult:
    """Do what `verify` does with a run that was read already.

    Raises:
        MissingDependencyError: RDKit cannot be imported.
        UsageError: The memory does not hold the model.
    """
    ledger = examine(run)
    tasks: list[Task] = [*record_tasks(run), *line_tasks(run)]
    if run.format_version == 0:
        return conclude(run, ledger, reached="E2", reason="", counts=count_evidence(run))
    if run.manifest is not None:
        ledger.extend(_compare_backend(run.manifest))
    if not tasks:
        ledger.add(finding("REPLAY_NOTHING", "the run holds no episode that could be played again"))
    planned = len(tasks) + (0 if wish is None else count_greedy(run))
    episodes = steps = differing = 0
    for batch in replay_tasks(tasks, workers=workers):
        ledger.extend(batch.findings)
        episodes += batch.episodes
        steps += batch.steps
        differing += batch.differing
        if on_progress is not None:
            on_progress(episodes, planned)
    counts = {
        **count_evidence(run),
        "episodes_replayed": episodes,
        "steps_replayed": steps,
        "episodes_differing": differing,
    }
    if run.lacks_a_log():
        reason = "the packet does not carry the logs: E3 for the evaluation only"
        return conclude(run, ledger, reached="E3", reason=reason, counts=counts)
    if wish is not None and level_of(ledger.findings(), "E3")[0] == "E3":
        return _conclude_with_model(run, ledger, wish, counts, on_progress)
    reason = "`--regenerate` has the model itself play again, which is level E4; replay cannot show whose the calls are"
    return conclude(run, ledger, reached="E3", reason=reason, counts=counts)


def _conclude_with_model(
    run: RunDirectory, ledger: Ledger, wish: Wish, counts: dict[str, int], on_progress: Progress | None
) -> ValidationResult:
    """Have the run's model play again, and conclude with what it shows."""
    done, planned = counts["episodes_replayed"], counts["episodes_replayed"] + count_greedy(run)

    def tell() -> None:
        nonlocal done
        done += 1
        if on_progress is not None:
            on_progress(done, planned)

    shown = regenerate(run, wish, on_episode=tell)
    ledger.extend(shown.findings)
    return conclude(run, ledger, reached=shown.reached, reason=shown.reason, counts={**counts, **shown.counts})


def record_tasks(run: RunDirectory) -> Iterator[RecordTask]:
    """List the evaluation episodes of a run."""
    for path, evaluation in run.evaluations():
        is_spoken = evaluation.policy.kind == "hf"
        for number, episode in enumerate(evaluation.episodes):
            yield RecordTask(path, number, episode, evaluation.plan, is_spoken, _is_own_wording(run))


def line_tasks(run: RunDirectory) -> Iterator[LinesTask]:
    """List the training episodes of a run, each with its lines in file order; they are read while the run is there."""
    settings = None if run.manifest is None else run.manifest.configuration
    length = "full" if settings is None else settings.observation_length
    turn_limit = 0 if settings is None else settings.turn_limit
    # A task goes to another process: the whole list of files would go with it.
    files = RunFiles(root=run.files.root, sizes={}, findings=())
    episodes = run.every_rollout.group_by("episode_id", maintain_order=True).agg("line", "start")
    for episode_id, numbers, starts in episodes.iter_rows():
        yield LinesTask(
            files,
            run.limits,
            episode_id,
            tuple(numbers),
            tuple(starts),
            length,
            turn_limit,
            _is_own_wording(run),
            settings,
        )


def _is_own_wording(run: RunDirectory) -> bool:
    return run.manifest is None or run.manifest.product_version == __version__


def replay_tasks(tasks: Sequence[Task], *, workers: int | None = None) -> Iterator[Replayed]:
    """Play episodes again; which process plays which changes no result, only the order of the answers."""
    if workers is None:
        workers = max(1, min(multiprocessing.cpu_count(), len(tasks) // _EPISODES_A_WORKER))
    batches = [tasks[start : start + _BATCH] for start in range(0, len(tasks), _BATCH)]
    if workers == 1 or len(batches) <= 1:
        yield from map(replay_batch, batches)
        return
    # Spawned, not forked: table libraries keep threads, and a fork in their midst can hang.
    context = multiprocessing.get_context("spawn")
    with _safe_module_path(), ProcessPoolExecutor(max_workers=workers, mp_context=context) as pool:
        try:
            for done in as_completed([pool.submit(replay_batch, batch) for batch in batches]):
                yield done.result()
        except BaseException:
            # Nobody waits for the batches that were not begun.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _safe_module_path() -> Iterator[None]:
    """Keep the working folder off the module path of child processes: a module in a stranger's folder would run."""
    environment = os.environ  # noqa: TID251 - a spawned worker takes this from the environment and from nowhere else
    before = environment.get("PYTHONSAFEPATH")
    environment["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del environment["PYTHONSAFEPATH"]
        else:
            environment["PYTHONSAFEPATH"] = before


def replay_batch(tasks: Sequence[Task]) -> Replayed:
    """Play some episodes again in this process."""
    findings: list[Finding] = []
    steps = differing = 0
    # Episodes of one prompt begin alike.
    moves = Moves()
    for task in tasks:
        found = list(_replay_one(task, moves))
        findings += found
        steps += len(task.episode.steps) if isinstance(task, RecordTask) else len(task.numbers)
        differing += any(item.severity == "error" for item in found)
    return Replayed(tuple(findings), len(tasks), steps, differing)


def _replay_one(task: Task, moves: Moves) -> Iterator[Finding]:
    try:
        yield from replay_record(task, moves) if isinstance(task, RecordTask) else replay_lines(task, moves)
    except Exception as error:  # noqa: BLE001 - the boundary of an episode: one hostile record must not hide the others
        what = f"playing the episode again raised {type(error).__name__}: {error}"
        if isinstance(task, RecordTask):
            yield task.wrong("REPLAY_STEP_DIFFERS", what, "")
        else:
            line, episode = task.numbers[0], task.episode_id
            yield finding("REPLAY_STEP_DIFFERS", what, file=layout.ROLLOUTS, line=line, episode=episode)


def _compare_backend(manifest: RunManifest) -> Iterator[Finding]:
    here, there = backend_fingerprint(), manifest.backend
    if here.property_table_sha256 != there.property_table_sha256:
        what = (
            f"the property table of this machine is {short(here.property_table_sha256)}, "
            f"the run's is {short(there.property_table_sha256)}; "
            f"RDKit {here.rdkit_version} here, {there.rdkit_version} there"
        )
        yield finding("BACKEND_UNLIKE", what, file=layout.MANIFEST, pointer="/backend/property_table_sha256")
    elif here.rules_version != there.rules_version:
        what = f"rules {here.rules_version} here, {there.rules_version} in the run"
        yield finding("BACKEND_UNLIKE", what, file=layout.MANIFEST, pointer="/backend/rules_version")
