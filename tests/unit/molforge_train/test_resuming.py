from __future__ import annotations

import time
from pathlib import Path

import orjson
import pytest
from warm_trainer import Child, warm_trainer

from benchmarks import kills
from molforge_env.errors import UnreadableError, UsageError
from molforge_eval import layout
from molforge_eval.archive import pack_run
from molforge_eval.run_directory import load
from molforge_train.checkpoints import Checkpoint, check_loaded, checkpoint_folder, latest_whole
from molforge_train.config import resolve
from molforge_train.policy import choose_place, load_policy
from molforge_train.recording import read_clock
from molforge_train.reopening import check_open, mend_rollouts, mend_rows
from molforge_train.run_record import writing_alone
from molforge_train.training_run import resume, train

FLAGS = (*kills.FLAGS, "--max-steps", "6", "--run-before-eval", "0", "--run-after-eval", "0")
SETTINGS = {flag[2:].replace("-", "_"): value for flag, value in zip(FLAGS[2::2], FLAGS[3::2], strict=True)}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("undisturbed")
    resolved = resolve("tiny-cpu", {**SETTINGS, "output_root": str(root)}, {}, now=read_clock())
    return train(resolved, quiet=True, say=str).folder


def wait_for_step(process: Child, folder: Path, step: int) -> None:
    """Wait until a step stands in the trainer log."""
    end = time.monotonic() + 200
    while process.poll() is None and time.monotonic() < end:
        if any(orjson.loads(row)["step"] == step for row in kills.lines_of(folder, layout.TRAINER_LOG)):
            return
        time.sleep(0.01)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was killed after step 3, went on from its checkpoint of step 2, and was killed once more."""
    root = tmp_path_factory.mktemp("killed")
    folder, said = root / "killed", root / "said"
    with warm_trainer() as warm:
        for words, step in ((("grpo", *FLAGS, "--output-root", str(root)), 3), (("resume", str(folder)), 5)):
            process = warm.start([*words, "--quiet"], said)
            wait_for_step(process, folder, step)
            before = kills.lines_of(folder)

            process.kill()
            assert process.wait() < 0, said.read_text()
            assert list(kills.faults_of_killed(folder, before)) == []
    return folder


def test_a_run_that_was_killed_twice_goes_on_to_what_an_undisturbed_run_gives(killed: Path, undisturbed: Path) -> None:
    before = kills.lines_of(killed)
    finished = resume(killed, quiet=True, say=str)
    run = load(killed)
    rows = [orjson.loads(row) for row in kills.lines_of(killed, layout.TRAINER_LOG)]
    resumes = [row for row in rows if row["type"] == "resume"]

    assert finished.manifest.status == "complete"
    assert list(kills.faults_of_finished(killed, undisturbed)) == []
    # All that was written is there still; what gave way is marked and counts in nothing.
    assert kills.lines_of(killed)[: len(before)] == before
    assert len(resumes) == 2
    assert all(row["step"] % 2 == 0 and row["rollout_lines"] <= len(before) for row in resumes)
    assert len(run.rollouts) < len(run.every_rollout)
    assert run.summary.num_episodes == 12 == load(undisturbed).summary.num_episodes
    assert finished.manifest.run_id == rows[0]["run_id"]
    assert not checkpoint_folder(killed).exists()
    # As a kill after the seal leaves them.
    left = checkpoint_folder(killed) / "checkpoint-2"
    left.mkdir(parents=True)
    (left / "weights").write_bytes(b"left")
    with pytest.raises(UsageError, match="the run is complete") as refused:
        resume(killed, quiet=True, say=str)
    assert not checkpoint_folder(killed).exists()
    assert "deliver" not in refused.value.mend


def test_a_complete_run_that_was_to_be_brought_somewhere_names_the_command(undisturbed: Path, tmp_path: Path) -> None:
    manifest = load(undisturbed).manifest
    to_drive = manifest.configuration.model_copy(update={"drive_output_dir": str(tmp_path)})
    with pytest.raises(UsageError, match="the run is complete") as refused:
        check_open(undisturbed, manifest.model_copy(update={"configuration": to_drive}))
    assert f"molforge-train deliver {undisturbed}" in refused.value.mend


def test_a_model_that_is_not_fetched_yet_does_not_count_as_another(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "empty"))
    folder = tmp_path / "run"
    folder.mkdir()
    manifest = orjson.loads((undisturbed / layout.MANIFEST).read_bytes())
    manifest["status"] = "running"
    manifest["configuration"]["base_model"] = "nobody/has-this"
    (folder / layout.MANIFEST).write_bytes(orjson.dumps(manifest))

    # Offline it is the loading that fails: the run is not told that it began with another model.
    with pytest.raises(UnreadableError, match="the base model nobody/has-this cannot be loaded"):
        resume(folder, quiet=True, say=str)


def test_what_breaks_off_is_taken_from_the_end_of_a_log_and_nothing_else(undisturbed: Path, tmp_path: Path) -> None:
    pack_run(undisturbed, tmp_path / "run.zip")
    folder = tmp_path / "run"
    (folder / "logs").mkdir(parents=True)
    lines = kills.lines_of(undisturbed)
    last_end = max(number for number, line in enumerate(lines[:-1]) if orjson.loads(line)["ended_by"] is not None)
    (folder / layout.ROLLOUTS).write_bytes(b"\n".join([*lines[:-1], lines[-1][:40]]))
    rows = kills.lines_of(undisturbed, layout.TRAINER_LOG)
    (folder / layout.TRAINER_LOG).write_bytes(b"\n".join([*rows, rows[0][:30]]))

    assert len(mend_rollouts(folder)) == last_end + 1
    assert kills.lines_of(folder) == lines[: last_end + 1]
    assert len((folder / layout.METRICS_TABLE).read_bytes().splitlines()) == last_end + 2
    assert mend_rows(folder) == [orjson.loads(row) for row in rows]


def test_a_checkpoint_without_its_mark_or_of_another_run_is_none(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-4").mkdir()
    (tmp_path / "checkpoint-2").mkdir()
    (tmp_path / "checkpoint-2" / "molforge_checkpoint.json").write_bytes(
        orjson.dumps({"run_id": "run-0123456789ab", "step": 2, "adapter_sha256": "0" * 64})
    )

    assert latest_whole(tmp_path, "run-000000000000") is None
    with pytest.raises(UnreadableError, match="not the one that was saved"):
        latest_whole(tmp_path, "run-0123456789ab")


def test_a_run_that_is_being_written_is_not_gone_on_with(undisturbed: Path) -> None:
    with writing_alone(undisturbed), pytest.raises(UsageError, match="another process writes this run"):
        resume(undisturbed, quiet=True, say=str)


def test_what_blocks_while_a_run_is_written_is_not_taken_for_another_writer(tmp_path: Path) -> None:
    with pytest.raises(BlockingIOError), writing_alone(tmp_path):
        raise BlockingIOError(11, "the terminal takes no more")
    with writing_alone(tmp_path):
        assert tmp_path.is_dir()


def test_a_folder_that_holds_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="no manifest"):
        resume(tmp_path, quiet=True, say=str)
    with pytest.raises(UnreadableError, match="there is no folder"):
        resume(tmp_path / "absent", quiet=True, say=str)


def test_an_adapter_that_is_not_the_one_of_the_checkpoint_is_refused(undisturbed: Path) -> None:
    settings = load(undisturbed).manifest.configuration
    model = load_policy(settings, choose_place(settings.device, settings.dtype)).model

    with pytest.raises(UnreadableError, match="tensors of the adapter are not those of the checkpoint"):
        check_loaded(model, Checkpoint(undisturbed / layout.ADAPTER_FOLDER, 6))


def test_a_run_whose_start_adapter_was_exchanged_is_not_gone_on_with(undisturbed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    manifest = orjson.loads((undisturbed / layout.MANIFEST).read_bytes())
    manifest["status"] = "running"
    manifest["input_adapter"]["sha256"] = "0" * 64
    (folder / layout.MANIFEST).write_bytes(orjson.dumps(manifest))

    with pytest.raises(UsageError, match="is not the one that the run began with"):
        resume(folder, quiet=True, say=str)
