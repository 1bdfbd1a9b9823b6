from __future__ import annotations

import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from click.testing import CliRunner
from evidence_builder import tensors_of
from warm_trainer import WarmTrainer, warm_trainer

from molforge_env.suites import ResolvedScenario
from molforge_env.tools import ToolSession
from molforge_eval import layout
from molforge_eval.archive import pack_run
from molforge_eval.calls import call_tool
from molforge_eval.plan import plan_digest
from molforge_eval.records import EvaluationPlan, RunManifest
from molforge_eval.replay import verify
from molforge_eval.report.model_card import write_card
from molforge_eval.run_directory import load
from molforge_eval.training_reward import conduct_of, training_reward
from molforge_eval.validate import validate
from molforge_eval.weights import hash_file
from molforge_train.cli import cli
from molforge_train.config import resolve, shipped_path
from molforge_train.preflight import check
from molforge_train.recording import read_clock
from molforge_train.training_run import FinishedRun, RunFailedError, RunInterruptedError, train

SMALL = {
    "num_generations": "2",
    "batch_size": "4",
    "gradient_accumulation": "1",
    "max_steps": "3",
    "dataset_size": "4",
    "eval_seeds": "1",
    "max_completion_length": "240",
    # So much that three steps show in what is played.
    "learning_rate": "0.02",
}
BARE = {"run_before_eval": "0", "run_after_eval": "0", "num_iterations": "1", "max_steps": "2"}
SFT_ADAPTER = Path(shipped_path("molforge_train/models/tiny/sft_adapter"))


def run_small(root: Path, say: Any = str, **flags: str) -> FinishedRun:
    resolved = resolve(
        "tiny-cpu", {**SMALL, "output_root": str(root), "run_name": "small", **flags}, {}, now=read_clock()
    )
    check(resolved.configuration, {})
    return train(resolved, quiet=True, say=say)


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmTrainer]:
    with warm_trainer() as started:
        yield started


class Sample(NamedTuple):
    finished: FinishedRun
    drive: Path
    said: list[str]

    @property
    def folder(self) -> Path:
        return self.finished.folder

    def lines(self, path: str) -> list[dict[str, Any]]:
        return [orjson.loads(line) for line in (self.folder / path).read_bytes().splitlines()]


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> Sample:
    top = tmp_path_factory.mktemp("training")
    said: list[str] = []
    drive = top / "drive"
    return Sample(run_small(top / "runs", said.append, drive_output_dir=str(drive)), drive, said)


def test_every_artifact_is_there_and_nothing_else(sample: Sample) -> None:
    found = {path.relative_to(sample.folder).as_posix() for path in sample.folder.rglob("*") if path.is_file()}
    wanted = {layout.MANIFEST, layout.PLAN, *layout.LOGS, layout.METRICS_TABLE, *layout.EVALUATIONS, layout.SUMMARY}
    wanted |= {layout.CHECKSUMS, layout.PLOT_DATA, *layout.PLOTS, layout.ADAPTER_CONFIG, layout.ADAPTER_WEIGHTS}

    assert wanted <= found
    assert all(layout.is_packed(path) for path in found)
    assert layout.ADAPTER_CARD in found
    assert not any("ref" in path.split("/") for path in found)


def test_validation_finds_nothing(sample: Sample) -> None:
    result = validate(sample.folder)

    assert result.findings == ()
    assert result.level == "E2"


def test_every_episode_of_training_and_evaluation_is_replayed_without_a_difference(sample: Sample) -> None:
    result = verify(sample.folder)

    assert result.findings == ()
    assert result.level == "E3"


def test_the_first_lines_say_what_is_trained(sample: Sample) -> None:
    assert [line.split()[0] for line in sample.said[:4]] == ["model", "adapter", "preset", "device"]
    assert "molforge_train/models/tiny/base" in sample.said[0]


def test_the_manifest_says_complete_and_ties_plan_and_adapters_to_the_run(sample: Sample) -> None:
    manifest = RunManifest.model_validate_json((sample.folder / layout.MANIFEST).read_bytes())
    plan = EvaluationPlan.model_validate_json((sample.folder / layout.PLAN).read_bytes())

    assert (manifest.status, manifest.steps_completed, manifest.non_finite_steps) == ("complete", 3, 0)
    assert manifest.plan_sha256 == plan_digest(plan)
    assert manifest.input_adapter is not None
    assert manifest.output_adapter is not None
    assert manifest.input_adapter.sha256 == hash_file(SFT_ADAPTER / "adapter_model.safetensors")
    assert manifest.output_adapter.sha256 == hash_file(sample.folder / layout.ADAPTER_WEIGHTS)
    assert manifest.input_adapter.sha256 != manifest.output_adapter.sha256
    assert manifest.output_adapter.tensors_sha256 == tensors_of(sample.folder)
    assert manifest.input_adapter.tensors_sha256 not in (None, manifest.output_adapter.tensors_sha256)
    assert manifest.input_adapter.tensors_sha256_reason is None
    assert manifest.trainable_parameters == manifest.output_adapter.parameters
    assert manifest.configuration_sources["max_steps"] == "flag"


def test_before_and_after_are_the_adapters_before_and_after(sample: Sample) -> None:
    run = load(sample.folder)

    assert run.before is not None
    assert run.after is not None
    assert run.manifest is not None
    assert run.before.policy.adapter_sha256 == run.manifest.input_adapter.sha256
    assert run.after.policy.adapter_sha256 == run.manifest.output_adapter.sha256
    assert run.before.plan == run.after.plan == run.plan
    assert run.before.policy.base_model_sha256 == run.manifest.base_model_sha256


def test_the_log_has_a_row_a_step_with_score_and_parts_beside_the_reward(sample: Sample) -> None:
    rows = sample.lines(layout.TRAINER_LOG)

    assert [(row["type"], row["step"]) for row in rows] == [("train", 1), ("train", 2), ("train", 3), ("summary", 3)]
    # Two passes over one batch: the second has no new episodes.
    assert ["reward" in row for row in rows] == [True, False, True, False]
    for row in rows[:3:2]:
        parts = [value for name, value in row.items() if name.startswith("reward_part/")]
        assert sum(parts) == pytest.approx(row["reward"], abs=1e-5)
        assert 0.0 <= row["strict_score"] <= 1.0
        assert row["rewards/episode_reward/mean"] == row["reward"]


def test_the_card_of_the_adapter_is_sealed_and_says_what_the_records_give(sample: Sample) -> None:
    card = (sample.folder / layout.ADAPTER_CARD).read_text("utf-8")
    manifest = load(sample.folder).manifest

    assert card == write_card(load(sample.folder))
    assert layout.ADAPTER_CARD in (sample.folder / layout.CHECKSUMS).read_text()
    assert manifest.output_adapter.sha256 in card
    assert "3 of 3; learning rate" in card
    assert str(Path.home()) + "/" not in card


def test_every_training_episode_plays_again_from_its_lines_alone(sample: Sample) -> None:
    weights = load(sample.folder).manifest.configuration.reward_weights
    episodes: dict[str, list[dict[str, Any]]] = {}
    for line in sample.lines(layout.ROLLOUTS):
        episodes.setdefault(line["episode_id"], []).append(line)

    assert len(episodes) == 8
    for lines in episodes.values():
        session = ToolSession(observation_length="compact")
        opening = session.start(
            ResolvedScenario.model_validate(lines[0]["scenario"]), reward_mode=lines[0]["reward_mode"]
        )
        assert opening in lines[0]["prompt"]
        for line in lines:
            if line["tool"] is not None:
                outcome = call_tool(session, line["tool"], line["arguments"]).outcome
                assert line["transition_reward"] == (None if outcome is None else outcome.reward)
        conduct = conduct_of(
            ((line["status"], line["error_code"], line["governance_status"]) for line in lines if line["tool"]),
            done=session.done,
        )
        assert lines[-1]["training_reward"] == training_reward(conduct, session.scores, weights)
        assert lines[-1]["episode_score"] == (session.scores["final_score"] if session.done else 0.0)


def test_episodes_of_a_group_share_scenario_and_seed_and_groups_do_not(sample: Sample) -> None:
    starts = [line for line in sample.lines(layout.ROLLOUTS) if line["scenario"] is not None]
    seeds = [(line["trainer_step"], line["episode_id"].rsplit("-", 1)[0], line["seed"]) for line in starts]

    assert len(set(seeds)) == 4
    assert len({seed for *_, seed in seeds}) == 4
    assert {line["trainer_step"] for line in starts} == {0, 2}


def test_records_hold_no_path_of_this_machine(sample: Sample) -> None:
    texts = [sample.folder / layout.MANIFEST, *sorted((sample.folder / "adapters").glob("*.json"))]

    for path in texts:
        assert str(Path.home()) + "/" not in path.read_text()
    config = orjson.loads((sample.folder / layout.ADAPTER_CONFIG).read_bytes())
    assert config["base_model_name_or_path"] == "molforge_train/models/tiny/base"


def test_the_archive_is_packed_again_to_the_same_bytes_and_the_copy_is_the_run(sample: Sample, tmp_path: Path) -> None:
    pack_run(sample.folder, tmp_path / "again.zip")

    assert sample.finished.archive == sample.folder.with_name("small.zip")
    assert (tmp_path / "again.zip").read_bytes() == sample.finished.archive.read_bytes()
    assert (sample.drive / "small.zip").read_bytes() == sample.finished.archive.read_bytes()
    assert sample.finished.delivery.copy == sample.drive / "small"
    for path in sample.folder.rglob("*"):
        if path.is_file():
            assert (sample.drive / "small" / path.relative_to(sample.folder)).read_bytes() == path.read_bytes()


def test_an_adapter_that_training_has_not_changed_is_an_error_and_the_run_is_sealed_as_failed(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match="after 1 steps the adapter is the one that training began with"):
        run_small(tmp_path, max_steps="1", learning_rate="0", beta="0", run_before_eval="0")
    folder = tmp_path / "small"
    found = {finding.code for finding in validate(folder).findings}

    assert load(folder).manifest.status == "failed"
    assert (folder / layout.ADAPTER_WEIGHTS).read_bytes() == (SFT_ADAPTER / "adapter_model.safetensors").read_bytes()
    assert {"ADAPTER_UNCHANGED", "EVALUATION_MISSING"} <= found


def test_an_adapter_that_was_kept_in_half_precision_is_as_unchanged_by_a_step_of_nothing(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    half = Path(shutil.copytree(SFT_ADAPTER, tmp_path / "half"))
    weights = load_file(half / "adapter_model.safetensors")
    save_file({name: value.astype("float16") for name, value in weights.items()}, half / "adapter_model.safetensors")
    with pytest.raises(RunFailedError, match="the adapter is the one that training began with"):
        run_small(tmp_path, max_steps="1", learning_rate="0", run_before_eval="0", sft_adapter_path=str(half))
    manifest = load(tmp_path / "small").manifest

    assert manifest.status == "failed"
    # The files differ: the number type is another.
    assert manifest.input_adapter.sha256 != manifest.output_adapter.sha256


def interrupt_when(folder: Path, logged: int, stop: threading.Event) -> threading.Thread:
    """Send a signal to this process when the trainer log of a run has so many rows."""

    def watch() -> None:
        log = folder / layout.TRAINER_LOG
        while not stop.is_set():
            if log.is_file() and log.read_bytes().count(b"\n") >= logged:
                os.kill(os.getpid(), signal.SIGTERM)
                return
            time.sleep(0.02)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_a_signal_lets_the_step_end_and_seals_the_run_as_interrupted(tmp_path: Path) -> None:
    handler = signal.getsignal(signal.SIGTERM)
    stop = threading.Event()
    thread = interrupt_when(tmp_path / "small", 1, stop)
    try:
        with pytest.raises(RunInterruptedError, match="SIGTERM after step") as interrupted:
            run_small(tmp_path, max_steps="400", run_before_eval="0")
    finally:
        stop.set()
        thread.join()
    run = load(tmp_path / "small")

    assert interrupted.value.exit_code == 130
    assert signal.getsignal(signal.SIGTERM) is handler
    assert run.manifest.status == "interrupted"
    assert 1 <= run.manifest.steps_completed < 400
    assert run.manifest.output_adapter is not None
    assert run.checksums is not None
    assert run.after is None
    assert len(run.trainer_log.filter(run.trainer_log["type"] == "train")) == run.manifest.steps_completed
    assert (tmp_path / "small.zip").is_file()


def test_a_second_interrupt_before_the_seal_leaves_a_status_with_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def press_again(*_: object) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr("molforge_train.training_run._seal", press_again)
    stop = threading.Event()
    thread = interrupt_when(tmp_path / "small", 1, stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_small(tmp_path, max_steps="400", run_before_eval="0")
    finally:
        stop.set()
        thread.join()
    manifest = load(tmp_path / "small").manifest

    assert manifest.status == "interrupted"
    assert manifest.ended_at is not None


def test_a_run_that_is_killed_is_left_as_running_after_its_last_step(tmp_path: Path, warm: WarmTrainer) -> None:
    flags = {**SMALL, "max_steps": "400", "run_before_eval": "0", "output_root": str(tmp_path), "run_name": "small"}
    words = [word for name, value in flags.items() for word in ("--" + name.replace("_", "-"), value)]
    log = tmp_path / "small" / layout.TRAINER_LOG
    process = warm.start(["grpo", "--preset", "tiny-cpu", *words, "--quiet"], tmp_path / "said")
    while process.poll() is None and not (log.is_file() and log.read_bytes().count(b"\n") >= 3):
        time.sleep(0.05)
    process.kill()
    process.wait()
    manifest = load(tmp_path / "small").manifest

    assert process.returncode == -signal.SIGKILL
    assert manifest.status == "running"
    assert manifest.steps_completed >= 2
    assert [path.name for path in tmp_path.rglob("*") if path.name.startswith(".")] == []
    assert not (tmp_path / "small" / layout.CHECKSUMS).exists()


def test_an_interrupt_outside_training_takes_effect_at_once_and_the_run_is_copied_too(tmp_path: Path) -> None:
    def say(line: str) -> None:
        if line.startswith("before training"):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(RunInterruptedError, match="SIGINT after step 0 of 3"):
        run_small(tmp_path / "runs", say, drive_output_dir=str(tmp_path / "drive"))

    for root in (tmp_path / "runs", tmp_path / "drive"):
        assert load(root / "small").manifest.status == "interrupted"
        assert (root / "small" / layout.CHECKSUMS).is_file()
        assert (root / "small.zip").is_file()


@pytest.mark.parametrize(
    ("error", "reason", "mend"),
    [
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory"),
            "out of memory after step 0 of 3",
            "RL_BATCH_SIZE",
        ),
        (ValueError("the sky fell"), "ValueError: the sky fell", "MOLFORGE_TRACEBACK"),
    ],
)
def test_a_run_that_breaks_is_sealed_as_failed_with_its_reason(tmp_path: Path, error, reason, mend) -> None:
    def say(line: str) -> None:
        if line.startswith("before training"):
            raise error

    with pytest.raises(RunFailedError) as failed:
        run_small(tmp_path, say)
    run = load(tmp_path / "small")

    assert failed.value.what == reason
    assert mend in failed.value.mend
    assert (run.manifest.status, run.manifest.status_reason) == ("failed", reason)
    assert run.checksums is not None
    assert (tmp_path / "small.zip").is_file()


SHORT_OF_MEMORY = """
import resource
from molforge_train import stages, training_run

unlimited = resource.getrlimit(resource.RLIMIT_AS)
seal, place = training_run._seal, {place!r}

def tighten(*given, **named):
    # What the process has now, and little more: the next large tensor is refused by the system itself.
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + (48 << 20), unlimited[1]))
    return begun(*given, **named)

def widen(*given, **named):
    # The room that the trainer has given back to the system.
    resource.setrlimit(resource.RLIMIT_AS, unlimited)
    return seal(*given, **named)

begun = getattr(stages, place)
setattr(stages, place, tighten)
training_run._seal = widen
"""


@pytest.mark.parametrize(
    ("place", "moment"), [("prompt_rows", "in training"), ("run_evaluation", "in an evaluation")], ids=lambda word: word
)
def test_a_run_that_the_system_gives_no_more_memory_ends_in_three_lines_that_name_the_levers(
    tmp_path: Path, warm: WarmTrainer, place: str, moment: str
) -> None:
    words = ["grpo", "--preset", "tiny-cpu", "--output-root", str(tmp_path), "--run-name", "small", "--max-steps", "2"]
    more = ["--eval-seeds", "8", "--run-before-eval", "0" if place == "prompt_rows" else "1", "--quiet"]
    more += ["--max-completion-length", "1100", "--observation-length", "full"]
    code = warm.start([*words, *more], tmp_path / "said", SHORT_OF_MEMORY.format(place=place)).wait()
    told = (tmp_path / "said").read_text().splitlines()
    run = load(tmp_path / "small")

    assert code == 2, told
    assert told[-3:-1] == ["out of memory after step 0 of 2", f"  where: {tmp_path / 'small'}"]
    assert told[-1].startswith(
        "  mend:  Its records are sealed as failed; begin a smaller one with MAX_COMPLETION_LENGTH=1024 with "
        "--observation-length compact, which such episodes need; RL_BATCH_SIZE=8 with RL_GRAD_ACCUM=3, their product a "
        "multiple of NUM_GENERATIONS=8"
    )
    assert run.manifest is not None
    assert (run.manifest.status, run.manifest.status_reason) == ("failed", "out of memory after step 0 of 2")
    assert run.checksums is not None
    assert "RUN_INCOMPLETE" in {item.code for item in validate(tmp_path / "small").findings}


def test_a_run_whose_copy_fails_is_complete_where_it_is(tmp_path: Path) -> None:
    def say(line: str) -> None:
        if line.startswith("device"):
            # Comes after the check before the run: a drive that was taken away meanwhile.
            (tmp_path / "drive").write_text("no folder")

    finished = run_small(tmp_path / "runs", say, drive_output_dir=str(tmp_path / "drive"), **BARE)

    assert finished.manifest.status == "complete"
    assert finished.delivery.copy is None
    assert ["its copy failed" in fault.what for fault in finished.delivery.faults] == [True]
    assert (finished.folder / layout.CHECKSUMS).is_file()
    assert finished.archive.is_file()


def test_a_run_that_cannot_be_sealed_is_never_called_complete(tmp_path: Path) -> None:
    def say(line: str) -> None:
        if line.startswith("after training"):
            # Stands where the data of the pictures belong.
            (tmp_path / "small" / layout.PLOT_DATA).mkdir(parents=True, exist_ok=True)

    with pytest.raises(RunFailedError, match="the run could not be sealed"):
        run_small(tmp_path, say, run_before_eval="0")
    manifest = load(tmp_path / "small").manifest

    assert manifest.status == "failed"
    assert "could not be sealed" in manifest.status_reason
    assert not (tmp_path / "small" / layout.CHECKSUMS).exists()


def test_an_adapter_of_another_model_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    from molforge_env.errors import UsageError

    folder = tmp_path / "adapter"
    folder.mkdir()
    (folder / "adapter_config.json").write_bytes((SFT_ADAPTER / "adapter_config.json").read_bytes())
    from safetensors.numpy import load_file, save_file

    weights = load_file(SFT_ADAPTER / "adapter_model.safetensors")
    first = min(weights)
    save_file({name: value for name, value in weights.items() if name != first}, folder / "adapter_model.safetensors")

    with pytest.raises(UsageError, match="is missing from the adapter; 1 of 28 keys do not match") as refusal:
        run_small(tmp_path / "runs", sft_adapter_path=str(folder))

    assert first in refusal.value.what
    assert not (tmp_path / "runs").exists()


def test_the_plan_is_shown_and_nothing_is_written(tmp_path: Path) -> None:
    words = ["grpo", "--preset", "tiny-cpu", "--dry-run", "--output-root", str(tmp_path / "runs"), "--max-steps", "9"]
    result = CliRunner().invoke(cli, words)

    assert result.exit_code == 0
    assert re.search(r"max_steps +9  \(flag\)", result.output)
    assert "nothing was loaded and nothing was written" in result.output
    assert not (tmp_path / "runs").exists()
