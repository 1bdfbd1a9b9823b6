from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import psutil
import pytest

from benchmarks import kills
from molforge_env.errors import UsageError
from molforge_eval import layout
from molforge_eval.replay import verify
from molforge_eval.run_directory import load
from molforge_eval.validate import validate
from molforge_train.checkpoints import checkpoint_folder
from molforge_train.errors import RunFailedError
from molforge_train.ranks import ALONE, Ranks, is_alone_unasked, ranks_of
from molforge_train.stages import check_processes
from molforge_train.training_run import resume

TORCHRUN = ("torch.distributed.run", "--standalone", "--nproc_per_node", "2", "--shutdown-timeout", "200")
ACCELERATE = ("accelerate.commands.launch", "--multi_gpu", "--num_processes", "2")
FLAGS = (*kills.FLAGS, "--max-steps", "4")
SHORTER = (*FLAGS, "--run-before-eval", "0")
LONGEST = 480.0
SECRETS = {"WANDB_API_KEY": "0f" * 20, "HF_TOKEN": "hf_" + "kept0to1its2self3" * 2}


class Launch:
    """Two processes that train together, and what they say."""

    def __init__(self, root: Path, launcher: tuple[str, ...], *words: str) -> None:
        self._out = root / "out"
        command = [sys.executable, "-P", "-m", *launcher, "-m", "molforge_train.cli", *words, "--quiet"]
        with self._out.open("ab") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, cwd=root, env={**os.environ, **SECRETS})
        self._end = time.monotonic() + LONGEST

    @property
    def said(self) -> str:
        return self._out.read_text("utf-8")

    def wait(self) -> int:
        """Wait for the end within the limit, and return the exit code."""
        try:
            return self.process.wait(max(1.0, self._end - time.monotonic()))
        except subprocess.TimeoutExpired:
            pytest.fail(f"not over after {LONGEST:.0f} s; it said:\n{self.said}")

    def wait_for_row(self, folder: Path, step: int) -> None:
        """Wait until a step stands in the trainer log."""
        while time.monotonic() < self._end and self.process.poll() is None:
            rows = [orjson.loads(row) for row in kills.lines_of(folder, layout.TRAINER_LOG)]
            if any(row["type"] == "train" and row["step"] >= step for row in rows):
                return
            time.sleep(0.02)
        pytest.fail(f"step {step} never came; it said:\n{self.said}")

    def process_of_rank(self, rank: int) -> psutil.Process:
        """Find a process of the run by its number."""
        for child in psutil.Process(self.process.pid).children(recursive=True):
            if child.environ().get("RANK") == str(rank):
                return child
        raise LookupError(rank)

    def clear(self) -> None:
        """End what is left."""
        if self.process.poll() is None:
            launcher = psutil.Process(self.process.pid)
            for process in (*launcher.children(recursive=True), launcher):
                process.kill()
            self.process.wait()


@contextmanager
def launch(root: Path, launcher: tuple[str, ...], *words: str) -> Iterator[Launch]:
    """Start two processes that train together, and leave none of them behind."""
    started = Launch(root, launcher, *words)
    try:
        yield started
    finally:
        started.clear()


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("together")
    with launch(root, ACCELERATE, "grpo", *FLAGS, "--output-root", str(root)) as run:
        assert run.wait() == 0, run.said
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


def test_no_secret_of_the_environment_is_in_a_record_or_in_what_is_said(together: Path) -> None:
    with zipfile.ZipFile(together.with_name("killed.zip")) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    files = {str(path): path.read_bytes() for path in together.parent.rglob("*") if path.is_file()}

    assert len(held) > 10
    assert len(files) > 10
    for value in SECRETS.values():
        assert [name for name, data in (held | files).items() if value.encode() in data] == []


def test_a_run_that_is_asked_to_end_and_whose_process_then_dies_goes_on_to_what_it_would_have_been(
    together: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "killed"
    with launch(tmp_path, TORCHRUN, "grpo", *SHORTER, "--output-root", str(tmp_path)) as run:
        run.wait_for_row(folder, 1)
        run.process.send_signal(signal.SIGTERM)
        assert run.wait() != 0, run.said
    manifest = load(folder).manifest
    assert (manifest.status, manifest.steps_completed) == ("interrupted", 2), manifest.status_reason
    assert manifest.status_reason == "SIGTERM after step 2 of 4"
    assert {item.code for item in validate(folder).findings} <= kills.SMALL | {"RUN_INCOMPLETE"}
    assert checkpoint_folder(folder).exists()

    with launch(tmp_path, TORCHRUN, "resume", str(folder)) as run:
        run.wait_for_row(folder, 3)
        run.process_of_rank(1).kill()
        assert run.wait() != 0, run.said
    manifest = load(folder).manifest
    assert (manifest.status, manifest.status_reason) == ("failed", "another of the 2 processes ended")
    assert (folder / layout.CHECKSUMS).exists()
    with pytest.raises(UsageError, match="2 processes began the run, and 1 would go on with it"):
        resume(folder, quiet=True, say=str)

    with launch(tmp_path, TORCHRUN, "resume", str(folder)) as run:
        assert run.wait() == 0, run.said
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
        ({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}, Ranks(3, 4, 1)),
        ({"PMI_SIZE": "4", "PMI_RANK": "2", "MPI_LOCALRANKID": "1"}, Ranks(2, 4, 1)),
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


@pytest.mark.parametrize(
    ("environment", "alone"),
    [
        # What accelerate 1.15 sets for `--cpu --num_processes 2`, for one process, and for `--multi_gpu`.
        ({"ACCELERATE_MIXED_PRECISION": "no", "ACCELERATE_USE_CPU": "True", "MASTER_ADDR": "127.0.0.1"}, True),
        ({"ACCELERATE_MIXED_PRECISION": "no", "ACCELERATE_USE_CPU": "True"}, False),
        ({"ACCELERATE_MIXED_PRECISION": "no", "MASTER_ADDR": "127.0.0.1", "RANK": "0", "WORLD_SIZE": "2"}, False),
        ({"MASTER_ADDR": "127.0.0.1"}, False),
    ],
)
def test_one_process_where_several_were_asked_for_is_noticed(environment: dict[str, str], alone: bool) -> None:
    assert is_alone_unasked(environment) is alone
