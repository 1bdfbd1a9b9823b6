"""The model family that users have, at the size of a test: data, fine-tuning, GRPO, evaluation, replay, reload.

The weights are random to begin with. Fine-tuning on our conversations is what makes the model call tools; two steps of
GRPO move the adapter and prove no more than that every part fits the next.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest
from click.testing import CliRunner
from rollout_words import endings_compared, host_trainer, roll_out
from safetensors.numpy import load_file, save_file
from tiny_qwen import TEMPLATE, make_tiny_qwen

from molforge_env.suites import SCENARIO_IDS
from molforge_eval import layout
from molforge_eval.chat_templates import known_templates
from molforge_eval.model_loading import fit_adapter
from molforge_eval.plan import Limits, standard_plan
from molforge_eval.play import run_evaluation
from molforge_eval.policies import Loading, PolicySpec, open_policy
from molforge_eval.records.evaluation import EpisodeRecord
from molforge_eval.replay import verify
from molforge_eval.validate import validate
from molforge_eval.weights import hash_file, read_adapter
from molforge_train.cli import cli
from molforge_train.policy import load_base
from molforge_train.recording import read_clock

DATA = ("--observation-length", "compact", "--conversations", "160")
# A rank as high as the model is wide: the adapter has to teach random weights everything that they do.
SFT = (
    "--preset", "tiny-cpu", "--rank", "64", "--steps", "60", "--batch-size", "4", "--learning-rate", "0.01",
    "--max-length", "700", "--device", "cpu",
)  # fmt: skip
GRPO = (
    "--preset", "tiny-cpu", "--run-name", "qwen", "--max-steps", "2", "--num-generations", "4", "--batch-size", "8",
    "--num-iterations", "1", "--dataset-size", "4", "--eval-seeds", "1", "--max-completion-length", "400",
    "--max-new-tokens", "32",
)  # fmt: skip


class Chain(NamedTuple):
    base: Path
    adapter: Path
    run: Path


def do(*words: str) -> None:
    answer = CliRunner().invoke(cli, [*words, "--quiet"])
    assert answer.exit_code == 0, (words, answer.output, answer.exception)


@pytest.fixture(scope="module")
def chain(tmp_path_factory) -> Chain:
    top = tmp_path_factory.mktemp("qwen")
    base = make_tiny_qwen(top / "base")
    data, adapter = top / "sft.jsonl", top / "adapter"
    do("data", "--out", str(data), *DATA)
    do("sft", str(data), "--base-model", str(base), "--out", str(adapter), *SFT)
    places = ("--base-model", str(base), "--sft-adapter-path", str(adapter), "--output-root", str(top / "runs"))
    do("grpo", *GRPO, *places)
    return Chain(base, adapter, top / "runs" / "qwen")


def unsloth_spelling(adapter: Path, target: Path) -> Path:
    """Write the adapter as Unsloth does, which trains the text half of the model that also sees."""
    shutil.copytree(adapter, target)
    tensors = load_file(target / "adapter_model.safetensors")
    named = {name.replace(".model.layers.", ".model.language_model.layers."): value for name, value in tensors.items()}
    assert set(named) & set(tensors) == set()
    save_file(named, target / "adapter_model.safetensors")
    settings = orjson.loads((target / "adapter_config.json").read_bytes())
    modules = [name.replace("model.layers.", "model.language_model.layers.") for name in settings["target_modules"]]
    (target / "adapter_config.json").write_bytes(orjson.dumps({**settings, "target_modules": modules}))
    return target


def played(chain: Chain, adapter: Path) -> list[EpisodeRecord]:
    """Play the greedy episodes with one of the adapters."""
    player = open_policy(PolicySpec("hf", str(chain.base), str(adapter)), Loading(device="cpu"))
    plan = standard_plan(observation_length="compact", limits=Limits(32, 400, 11), seeds=1)
    evaluation = run_evaluation(plan, player, "test", "run-000000000000", clock=read_clock, on_episode=lambda _: None)
    return [episode for episode in evaluation.episodes if episode.part == "greedy"]


def test_the_run_is_whole_and_is_played_again_without_a_difference(chain: Chain) -> None:
    result = verify(chain.run, workers=1)

    assert [item.code for item in result.findings] == []
    assert result.counts["episodes_replayed"] > 16
    assert result.counts["steps_replayed"] > 16
    assert result.counts["episodes_differing"] == 0


def test_a_call_that_the_xml_does_not_hold_is_named(chain: Chain, tmp_path: Path) -> None:
    run = Path(shutil.copytree(chain.run, tmp_path / "run"))
    evaluation = orjson.loads((run / layout.AFTER).read_bytes())
    steps = next(episode["steps"] for episode in evaluation["episodes"] if episode["steps"])
    steps[0]["arguments"] = {"slot": "hinge", "fragment": "another"}
    (run / layout.AFTER).write_bytes(orjson.dumps(evaluation))
    lines = [orjson.loads(line) for line in (run / layout.ROLLOUTS).read_bytes().splitlines()]
    called = next(row for row in lines if row["tool"] is not None)
    called["raw_completion"] = called["raw_completion"].replace("<function=", "<function=x")
    (run / layout.ROLLOUTS).write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in lines))
    found = [item for item in verify(run, workers=1).findings if item.code == "REPLAY_CALL_DIFFERS"]

    assert {item.where.file for item in found} == {layout.AFTER, layout.ROLLOUTS}


def test_the_model_calls_tools_in_training_and_in_both_evaluations(chain: Chain) -> None:
    lines = (chain.run / layout.ROLLOUTS).read_bytes().splitlines()
    calls = [row["status"] for row in map(orjson.loads, lines) if row["tool"] is not None]
    rows = [orjson.loads(line) for line in (chain.run / layout.TRAINER_LOG).read_bytes().splitlines()]

    assert len(calls) > 12
    assert "ok" in calls
    assert any(row.get("reward_std") for row in rows)
    for name in (layout.BEFORE, layout.AFTER):
        episodes = orjson.loads((chain.run / name).read_bytes())["episodes"]
        assert sum(len(episode["steps"]) for episode in episodes) > 6
        assert any("<function=" in turn["raw_completion"] for episode in episodes for turn in episode["turns"])


def test_training_moved_the_adapter(chain: Chain) -> None:
    given, made = (read_adapter(folder).sha256 for folder in (chain.adapter, chain.run / layout.ADAPTER_FOLDER))

    assert given != made


def test_fine_tuning_marked_the_assistants_turns(chain: Chain) -> None:
    record = orjson.loads((chain.adapter / "sft_record.json").read_bytes())

    assert record["assistant_only_loss"]


def test_the_evaluator_feeds_the_ids_of_the_trainers_rollout_turn_by_turn(chain: Chain, tmp_path: Path) -> None:
    model, tokenizer = load_base(str(chain.base), "float32", side="left")
    assert tokenizer.chat_template == known_templates()[TEMPLATE]
    trainer = host_trainer(fit_adapter(model, read_adapter(chain.adapter), trainable=True), tokenizer, tmp_path)
    turns = []
    for scenario_id in SCENARIO_IDS:
        recording = roll_out(trainer, scenario_id)
        turns += [len(episode) for episode in recording.episodes]

        assert len(list(endings_compared(recording, scenario_id, tokenizer, trainer))) == 2
    assert max(turns) > 3, "the model has to be answered by its tools, or nothing was compared"


def test_an_adapter_as_unsloth_spells_it_is_the_same_adapter(chain: Chain, tmp_path: Path) -> None:
    import torch

    spelled = unsloth_spelling(chain.run / layout.ADAPTER_FOLDER, tmp_path / "unsloth")
    ids = torch.tensor([[5, 6, 7, 8, 9]])
    logits = []
    for folder in (chain.run / layout.ADAPTER_FOLDER, spelled):
        model, _ = load_base(str(chain.base), "float32", side="left")
        logits.append(fit_adapter(model, read_adapter(folder), trainable=True).eval()(ids).logits)
    plain, _ = load_base(str(chain.base), "float32", side="left")

    assert torch.equal(*logits)
    assert not torch.equal(logits[0], plain.eval()(ids).logits)


def test_either_spelling_plays_the_same_greedy_episodes(chain: Chain, tmp_path: Path) -> None:
    made = chain.run / layout.ADAPTER_FOLDER
    spelled = unsloth_spelling(made, tmp_path / "unsloth")
    stated = orjson.loads((chain.run / layout.AFTER).read_bytes())["episodes"]
    said = [[turn["raw_completion"] for turn in item["turns"]] for item in stated if item["part"] == "greedy"]

    assert hash_file(spelled / "adapter_model.safetensors") != hash_file(made / "adapter_model.safetensors")
    for folder in (made, spelled):
        assert [[turn.raw_completion for turn in episode.turns] for episode in played(chain, folder)] == said


def test_training_goes_on_from_either_spelling(chain: Chain, tmp_path: Path) -> None:
    made = chain.run / layout.ADAPTER_FOLDER
    outcomes = []
    for folder in (made, unsloth_spelling(made, tmp_path / "unsloth")):
        settings = ("--max-steps", "1", "--run-before-eval", "0", "--run-after-eval", "0")
        runs = tmp_path / "runs"
        places = ("--base-model", str(chain.base), "--sft-adapter-path", str(folder), "--output-root", str(runs))
        do("grpo", *GRPO, *settings, *places, "--run-name", folder.name)
        outcomes.append(read_adapter(runs / folder.name / layout.ADAPTER_FOLDER).sha256)

    assert outcomes[0] == outcomes[1]


def test_a_run_with_an_adapter_as_unsloth_spells_it_has_no_fault_of_keys(chain: Chain, tmp_path: Path) -> None:
    run = Path(shutil.copytree(chain.run, tmp_path / "run"))
    spelled = unsloth_spelling(run / layout.ADAPTER_FOLDER, tmp_path / "unsloth")
    for name in ("adapter_model.safetensors", "adapter_config.json"):
        shutil.copy(spelled / name, run / layout.ADAPTER_FOLDER / name)
    found = {item.code for item in validate(run).findings}

    # The bytes are others than those that were sealed; of its keys nothing is said.
    assert {code for code in found if code.startswith("ADAPTER_")} == {"ADAPTER_DIFFERS"}
