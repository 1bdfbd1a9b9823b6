from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest

from benchmarks import kills
from molforge_env.errors import UsageError
from molforge_eval import layout
from molforge_eval.replay import verify
from molforge_eval.run_directory import load
from molforge_eval.validate import validate
from molforge_train.checkpoints import checkpoint_folder
from molforge_train.errors import RunFailedError
from molforge_train.ranks import ALONE, Ranks, ranks_of
from molforge_train.stages import check_processes
from molforge_train.training_run import resume

LAUNCHER = (
    "-m",
    "torch.distributed.run",
    "--standalone",
    "--nproc_per_node",
    "2",
    "--shutdown-timeout",
    "200",
    "-m",
    "molforge_train.cli",
)
FLAGS = (*kills.FLAGS, "--max-steps", "4")


def start(root: Path, *words: str) -> subprocess.Popen[bytes]:
    """Start two processes that train together."""
    with (root / "out").open("ab") as out:
        return subprocess.Popen([sys.executable, "-P", *LAUNCHER, *words, "--quiet"], stdout=out, stderr=out, cwd=root)


def wait_for_row(process: subprocess.Popen[bytes], folder: Path, step: int, resumes: int = 0) -> None:
    """Wait until a step stands in the trainer log after so many resumes."""
    end = time.monotonic() + 200
    while process.poll() is None and time.monotonic() < end:
        rows = [orjson.loads(row) for row in kills.lines_of(folder, layout.TRAINER_LOG)]
        marks = [row for row in rows if row["type"] == "resume"]
        if rows and len(marks) == resumes and rows[-1]["type"] == "train" and rows[-1]["step"] >= step:
            return
        time.sleep(0.02)


def process_of_rank(launcher: subprocess.Popen[bytes], rank: int) -> int:
    """Find a process of the run by its number."""
    for child in Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split():
        if f"RANK={rank}".encode() in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
            return int(child)
    raise LookupError(rank)


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("together")
    process = start(root, "grpo", *FLAGS, "--output-root", str(root))

    assert process.wait(300) == 0, (root / "out").read_text()
    return root / "killed"


def test_two_processes_make_one_run_that_validates_and_replays_without_a_difference(together: Path) -> None:
    manifest = load(together).manifest
    result = verify(together)

    assert validate(together).findings == ()
    assert (result.findings, result.level) == ((), "E3")
    assert (manifest.status, manifest.steps_completed, manifest.processes) == ("complete", 4, 2)
    assert not checkpoint_folder(together).exists()


def test_their_groups_stand_in_one_log_once_and_in_the_order_of_the_rows(together: Path) -> None:
    lines = [orjson.loads(line) for line in kills.lines_of(together)]
    starts = [line for line in lines if line["scenario"] is not None]
    names = [
        f"step{step:05d}-prompt{prompt:02d}-{place:02d}" for step in (0, 2) for prompt in range(4) for place in (0, 1)
    ]

    assert [line["episode_id"] for line in starts] == names
    assert len({line["seed"] for line in starts}) == 8
    # The draws of a process are its own: the same prompt would be answered in another way.
    assert len({line["raw_completion"] for line in starts}) > 1


def test_a_row_of_the_log_is_the_mean_over_the_episodes_of_both(together: Path) -> None:
    lines = [orjson.loads(line) for line in kills.lines_of(together)]
    paid = [line["training_reward"] for line in lines if line["ended_by"] and line["trainer_step"] == 0]
    row = orjson.loads(kills.lines_of(together, layout.TRAINER_LOG)[0])

    assert len(paid) == 8
    assert row["reward"] == pytest.approx(sum(paid) / 8, abs=1e-6)


def test_what_one_process_says_is_told_once(together: Path) -> None:
    said = (together.parent / "out").read_text().splitlines()

    assert [line for line in said if line.startswith("device")] == ["device         cpu, float32, 2 processes"]
    assert len([line for line in said if line.startswith("after training: greedy")]) == 1


def test_a_run_whose_process_dies_and_whose_launcher_is_stopped_goes_on_to_what_it_would_have_been(
    together: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "killed"
    process = start(tmp_path, "grpo", *FLAGS, "--run-before-eval", "0", "--output-root", str(tmp_path))
    wait_for_row(process, folder, 3)
    os.kill(process_of_rank(process, 1), signal.SIGKILL)

    assert process.wait(300) != 0
    manifest = load(folder).manifest
    assert (manifest.status, manifest.status_reason) == ("failed", "another of the 2 processes ended")
    assert (folder / layout.CHECKSUMS).exists()
    with pytest.raises(UsageError, match="2 processes began the run, and 1 would go on with it"):
        resume(folder, quiet=True, say=str)

    process = start(tmp_path, "resume", str(folder))
    wait_for_row(process, folder, 3, resumes=1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) != 0
    manifest = load(folder).manifest
    assert (manifest.status, manifest.status_reason) == ("interrupted", "SIGTERM after step 4 of 4")

    assert start(tmp_path, "resume", str(folder)).wait(300) == 0, (tmp_path / "out").read_text()
    assert list(kills.faults_of_finished(folder, together)) == []
    assert load(folder).manifest.status == "complete"


@pytest.mark.parametrize(
    ("environment", "ranks"),
    [
        ({}, ALONE),
        ({"WORLD_SIZE": "1", "RANK": "0"}, ALONE),
        ({"WORLD_SIZE": "", "RANK": ""}, ALONE),
        ({"WORLD_SIZE": "8", "RANK": "5", "LOCAL_RANK": "1"}, Ranks(5, 8, 1)),
        ({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1", "LOCAL_RANK": "1"}, Ranks(1, 2, 1)),
    ],
)
def test_a_launcher_numbers_the_processes(environment: dict[str, str], ranks: Ranks) -> None:
    assert ranks_of(environment) == ranks


def test_a_number_of_processes_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="RANK is '0' and WORLD_SIZE is 'two'"):
        ranks_of({"WORLD_SIZE": "two"})


def test_processes_that_the_host_trainer_does_not_know_of_are_refused() -> None:
    check_processes(2, Ranks(0, 2))
    with pytest.raises(RunFailedError, match="started 2 processes, and the host trainer averages the gradients of 1"):
        check_processes(1, Ranks(1, 2))
