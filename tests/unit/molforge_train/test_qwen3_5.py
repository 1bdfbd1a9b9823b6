"""The model family that users have, at the size of a test: data, fine-tuning, GRPO, evaluation, replay, reload.

The weights are random, so nothing is learned; every part is the one that a large model meets.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import orjson
import pytest
from click.testing import CliRunner
from safetensors.numpy import load_file, save_file
from tiny_qwen import TEMPLATE, make_tiny_qwen

from molforge_env.interface import prompt_text, tool_schemas
from molforge_eval import layout
from molforge_eval.chat_templates import known_templates
from molforge_eval.model_policy import chat_form
from molforge_eval.policies import Loading, PolicySpec, open_policy
from molforge_eval.replay import verify
from molforge_eval.validate import validate
from molforge_eval.weights import hash_file, read_adapter
from molforge_train.cli import cli
from molforge_train.errors import RunFailedError
from molforge_train.policy import load_base

SETTINGS = (
    "--preset", "tiny-cpu", "--run-name", "qwen", "--max-steps", "2", "--num-generations", "2", "--batch-size", "2",
    "--num-iterations", "1", "--dataset-size", "4", "--eval-seeds", "1", "--max-completion-length", "64", "--quiet",
)  # fmt: skip

NOTHING_LEARNED = {"ADAPTER_UNCHANGED", "COMPLETIONS_CUT", "SIGNAL_ABSENT"}


class Chain(NamedTuple):
    base: Path
    adapter: Path
    run: Path


def do(*words: str) -> None:
    answer = CliRunner().invoke(cli, list(words))
    assert answer.exit_code == 0, (words, answer.output, answer.exception)


@pytest.fixture(scope="module")
def chain(tmp_path_factory) -> Chain:
    top = tmp_path_factory.mktemp("qwen")
    base = make_tiny_qwen(top / "base")
    data, adapter = top / "sft.jsonl", top / "adapter"
    do("data", "--out", str(data), "--observation-length", "compact", "--conversations", "6", "--quiet")
    sft = ("--preset", "tiny-cpu", "--steps", "2", "--batch-size", "2", "--max-length", "3000", "--device", "cpu")
    do("sft", str(data), "--base-model", str(base), "--out", str(adapter), *sft, "--quiet")
    run = ("--base-model", str(base), "--sft-adapter-path", str(adapter), "--output-root", str(top / "runs"))
    # A model of random weights calls no tool, so the episodes of a group are rewarded alike and no weight moves.
    answer = CliRunner().invoke(cli, ["grpo", *SETTINGS, *run])
    assert isinstance(answer.exception, RunFailedError), (answer.output, answer.exception)
    assert "the adapter is the one that training began with" in answer.exception.what
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


def test_the_run_is_whole_is_played_again_and_says_that_nothing_was_learned(chain: Chain) -> None:
    result = verify(chain.run, workers=1)

    assert {item.code for item in result.findings if item.severity == "error"} == NOTHING_LEARNED
    assert result.counts["episodes_replayed"] > 0
    assert result.counts["episodes_differing"] == 0


def test_fine_tuning_marked_the_assistants_turns(chain: Chain) -> None:
    record = orjson.loads((chain.adapter / "sft_record.json").read_bytes())

    assert record["assistant_only_loss"]


def test_the_trainers_ids_are_those_of_the_evaluator(chain: Chain) -> None:
    from trl import GRPOTrainer
    from trl.chat_template_utils import get_training_chat_template

    model, tokenizer = load_base(str(chain.base), "float32", side="left")
    form = chat_form(model, tokenizer, "compact")
    assert tokenizer.chat_template == known_templates()[TEMPLATE]

    class Host:
        """The parts of the trainer that its method reads."""

        processing_class = tokenizer
        _tokenizer = tokenizer
        chat_template = get_training_chat_template(tokenizer)
        chat_template_kwargs: ClassVar[dict[str, Any]] = {}
        tools = tool_schemas("compact")
        _is_vlm = False

    answers = [{"role": "tool", "name": "defer", "content": "executed 1/7 4131"}]
    host = GRPOTrainer._get_tool_suffix_ids(Host(), answers)  # type: ignore[arg-type] # the parts that it reads
    words = "<tool_call>\n<function=edit>\n<parameter=slot>\nhinge\n</parameter>\n<parameter=fragment>\nazaindole\n"
    ids = tokenizer.encode(f"{words}</parameter>\n</function>\n</tool_call><|im_end|>", add_special_tokens=False)
    call = form.parse(ids, form.prompt_ids(prompt_text("compact"))).calls[0]

    assert form.suffix_ids(answers) == list(host)
    assert (call.name, call.arguments) == ("edit", {"slot": "hinge", "fragment": "azaindole"})


def test_an_adapter_as_unsloth_spells_it_is_the_same_adapter(chain: Chain, tmp_path: Path) -> None:
    import torch

    from molforge_eval.model_loading import fit_adapter

    spelled = unsloth_spelling(chain.run / layout.ADAPTER_FOLDER, tmp_path / "unsloth")
    ids = torch.tensor([[5, 6, 7, 8, 9]])
    logits = []
    for folder in (chain.run / layout.ADAPTER_FOLDER, spelled):
        model, _ = load_base(str(chain.base), "float32", side="left")
        logits.append(fit_adapter(model, read_adapter(folder), trainable=True).eval()(ids).logits)
    plain, _ = load_base(str(chain.base), "float32", side="left")

    assert torch.equal(*logits)
    assert not torch.equal(logits[0], plain.eval()(ids).logits)


def test_the_evaluator_loads_either_spelling(chain: Chain, tmp_path: Path) -> None:
    spelled = unsloth_spelling(chain.adapter, tmp_path / "unsloth")
    player = open_policy(PolicySpec("hf", str(chain.base), str(spelled)), Loading(device="cpu"))

    assert player.identity.adapter_sha256 == hash_file(spelled / "adapter_model.safetensors")


def test_a_run_with_an_adapter_as_unsloth_spells_it_has_no_fault_of_keys(chain: Chain, tmp_path: Path) -> None:
    run = Path(shutil.copytree(chain.run, tmp_path / "run"))
    spelled = unsloth_spelling(run / layout.ADAPTER_FOLDER, tmp_path / "unsloth")
    for name in ("adapter_model.safetensors", "adapter_config.json"):
        shutil.copy(spelled / name, run / layout.ADAPTER_FOLDER / name)
    found = {item.code for item in validate(run).findings}

    # The bytes are others than those that were sealed. The tensors are known for those that went in all the same.
    assert {code for code in found if code.startswith("ADAPTER_")} == {"ADAPTER_DIFFERS", "ADAPTER_UNCHANGED"}
