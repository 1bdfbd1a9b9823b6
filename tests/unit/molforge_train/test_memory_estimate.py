from __future__ import annotations

import struct
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from molforge_eval.records.manifest import Configuration
from molforge_train.config import resolve, shipped_path
from molforge_train.machine import Gpu, Machine
from molforge_train.memory_estimate import (
    Term,
    adapter_parameters,
    disk_bytes,
    episodes_evaluated,
    episodes_played,
    estimate_memory,
    levers,
    prompt_tokens,
    shapes_of,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PROCESSOR = Machine((), "2.13.0", torch_uses_gpus=True, free_memory_bytes=8 << 30)
GRAPHICS = PROCESSOR._replace(gpus=(Gpu("NVIDIA L4", 24 << 30, 22 << 30),))
HIDDEN, FEED_FORWARD, LAYERS, VOCABULARY, HEADS, KEYS, HEAD = 2048, 6144, 28, 151_936, 16, 8, 128
MEASURED_PEAK = 1475 * 2**20
"""Peak resident size of 16 steps of `tiny-cpu` with both evaluations, read from the system."""


def settle(preset: str = "tiny-cpu", **flags: str) -> Configuration:
    return resolve(preset, flags, {}, now=NOW).configuration


def terms_of(settings: Configuration, machine: Machine) -> dict[str, Term]:
    return {f"{term.name} {term.phase}".strip(): term for term in estimate_memory(settings, machine).terms}


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A model of nearly two billion parameters as its files say it: names and shapes are there, its weights a hole."""
    folder = tmp_path / "large"
    folder.mkdir()
    layer = {
        "self_attn.q_proj": (HEADS * HEAD, HIDDEN),
        "self_attn.k_proj": (KEYS * HEAD, HIDDEN),
        "self_attn.v_proj": (KEYS * HEAD, HIDDEN),
        "self_attn.o_proj": (HIDDEN, HEADS * HEAD),
        "mlp.gate_proj": (FEED_FORWARD, HIDDEN),
        "mlp.up_proj": (FEED_FORWARD, HIDDEN),
        "mlp.down_proj": (HIDDEN, FEED_FORWARD),
    }
    shapes = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN), "model.visual.patch.weight": (HIDDEN, HIDDEN)}
    shapes |= {f"model.layers.{n}.{name}.weight": shape for n in range(LAYERS) for name, shape in layer.items()}
    header, place = {}, 0
    for name, (rows, columns) in shapes.items():
        end = place + rows * columns * 2
        header[name] = {"dtype": "BF16", "shape": [rows, columns], "data_offsets": [place, end]}
        place = end
    text = orjson.dumps(header)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + place)
    config = {
        "hidden_size": HIDDEN, "intermediate_size": FEED_FORWARD, "num_hidden_layers": LAYERS, "vocab_size": VOCABULARY,
        "num_attention_heads": HEADS, "num_key_value_heads": KEYS, "head_dim": HEAD,
    }  # fmt: skip
    (folder / "config.json").write_bytes(orjson.dumps(config))
    return folder


def test_the_estimate_of_the_built_in_preset_is_what_a_run_of_it_took() -> None:
    estimate = estimate_memory(settle(), PROCESSOR)

    assert estimate.peak_phase == "updating"
    assert estimate.peak is not None
    assert MEASURED_PEAK <= estimate.peak <= 1.15 * MEASURED_PEAK
    assert (estimate.free, estimate.free_where) == (8 << 30, "main memory")


def test_the_parameters_are_those_of_the_files() -> None:
    assert adapter_parameters(settle()) == 77_824
    assert adapter_parameters(settle(sft_adapter_path="")) == 77_824
    shapes = shapes_of("molforge_train/models/tiny/base")
    assert not isinstance(shapes, str)
    assert (shapes.parameters, shapes.vocabulary, shapes.cached_layers) == (525_056, 1024, 2)


def test_each_term_of_a_large_model_is_its_formula(large: Path) -> None:
    settings = settle("colab-demo", base_model=str(large), sft_adapter_path="")
    terms = terms_of(settings, GRAPHICS)
    context = prompt_tokens(settings) + settings.max_completion_length
    blocks = LAYERS * (HIDDEN * HEAD * 2 * (HEADS + KEYS) + 3 * HIDDEN * FEED_FORWARD)
    adapted = 16 * LAYERS * (2 * (HIDDEN + HEADS * HEAD) + 2 * (HIDDEN + KEYS * HEAD) + 3 * (HIDDEN + FEED_FORWARD))

    assert terms["base weights"].size == 2 * (VOCABULARY * HIDDEN + blocks)
    assert terms["adapter"].size == terms["gradients"].size == 4 * adapted
    assert terms["optimizer"].size == 8 * adapted
    assert "start adapter" not in terms
    assert terms["keys and values generating"].size == 8 * context * LAYERS * 2 * KEYS * HEAD * 2
    assert terms["logits updating"].size == 2 * 4096 * 32_768 * 4
    assert f"{2 * context * VOCABULARY * 4 / 2**30:.1f} GiB" in terms["logits updating"].formula
    assert "gradient checkpointing is on" in terms["activations updating"].formula


def test_four_bits_make_the_linear_layers_smaller_and_the_rest_single_precision(large: Path) -> None:
    base = shapes_of(str(large))
    assert not isinstance(base, str)
    settings = settle("colab-demo", base_model=str(large), sft_adapter_path="", load_in_4bit="1")
    term = terms_of(settings, GRAPHICS)["base weights"]

    assert base.parameters - base.linear == VOCABULARY * HIDDEN
    assert term.size is not None
    assert term.size - 4 * VOCABULARY * HIDDEN == pytest.approx(base.linear * (4 + 8 / 64 + 32 / (64 * 256)) / 8, abs=1)
    assert "LOAD_IN_4BIT" not in levers(settings, is_gpu=True)
    unsloth = terms_of(settings.model_copy(update={"use_unsloth": True}), GRAPHICS)["base weights"]
    assert term.size - (unsloth.size or 0) == 2 * VOCABULARY * HIDDEN


def test_four_bits_are_advised_where_there_is_a_gpu() -> None:
    assert "LOAD_IN_4BIT=1" in levers(settle("colab-demo"), is_gpu=True)
    assert "LOAD_IN_4BIT" not in levers(settle("colab-demo"), is_gpu=False)


def test_checkpointing_that_is_switched_off_is_counted_in_full(large: Path) -> None:
    kept = [
        terms_of(
            settle("colab-demo", base_model=str(large), sft_adapter_path="", gradient_checkpointing=word), GRAPHICS
        )["activations updating"].size
        for word in ("auto", "on", "off")
    ]
    assert kept[0] == kept[1]
    assert (kept[0] or 0) * 10 < (kept[2] or 0)
    assert "GRADIENT_CHECKPOINTING=on" in levers(settle("colab-demo", gradient_checkpointing="off"), is_gpu=True)


def test_vllm_takes_its_share_of_the_device_and_the_cache_with_it(large: Path) -> None:
    def terms(mode: str, machine: Machine = GRAPHICS) -> dict[str, Term]:
        return terms_of(settle("colab-demo", base_model=str(large), sft_adapter_path="", vllm_mode=mode), machine)

    assert terms("colocate")["vLLM"].size == round(0.3 * (24 << 30))
    assert "keys and values generating" not in terms("colocate")
    assert "keys and values generating" not in terms("server")
    assert "vLLM" not in terms("server")


def test_a_peak_with_an_unknown_part_is_unknown(large: Path) -> None:
    settings = settle("colab-demo", base_model=str(large), sft_adapter_path="", vllm_mode="colocate")
    silent = GRAPHICS._replace(gpus=(Gpu("NVIDIA GB10", None, None),))

    assert estimate_memory(settings, silent).peak is None
    assert "how large the GPU is, is unknown" in terms_of(settings, silent)["vLLM"].formula


def test_the_peak_is_what_is_always_there_and_the_dearest_phase(large: Path) -> None:
    settings = settle("colab-demo", base_model=str(large), sft_adapter_path="")
    estimate = estimate_memory(settings, GRAPHICS)
    total: dict[str, int] = {}
    for term in estimate.terms:
        total[term.phase] = total.get(term.phase, 0) + (term.size or 0)

    assert estimate.peak == total.pop("") + max(total.values())
    assert total[estimate.peak_phase] == max(total.values())
    assert (estimate.free, estimate.free_where) == (22 << 30, "NVIDIA L4")


@pytest.mark.parametrize("phase", ["generating", "updating", "evaluating"])
def test_a_longer_episode_takes_more_in_every_phase_and_a_larger_batch_in_training(large: Path, phase: str) -> None:
    def size(**flags: str) -> int:
        settings = settle("colab-demo", base_model=str(large), sft_adapter_path="", **flags)
        return sum(term.size or 0 for term in estimate_memory(settings, GRAPHICS).terms if term.phase in ("", phase))

    assert size(max_completion_length="1024") < size()
    assert (size() < size(batch_size="4")) == (phase != "evaluating")
    assert size() < size(beta="0.1")


def test_what_is_not_known_is_unknown_with_its_reason() -> None:
    estimate = estimate_memory(settle("colab-demo", base_model="nobody/has-this"), PROCESSOR)

    assert estimate.peak is None
    assert {term.size for term in estimate.terms if term.name != "CUDA context"} == {None}
    assert {term.formula for term in estimate.terms if term.size is None} == {
        "nobody/has-this is not on this machine yet; fetch it first: hf download nobody/has-this"
    }
    assert (estimate.free, estimate.free_where) == (None, "this machine has no GPU that torch can use")


def test_a_configuration_that_says_too_little_is_named(large: Path) -> None:
    (large / "config.json").write_text('{"hidden_size": 2048}')
    assert "says too little: KeyError 'num_attention_heads'" in str(shapes_of(str(large)))
    (large / "config.json").write_text("[]")
    assert "says too little" in str(shapes_of(str(large)))


def test_episodes_are_counted_as_they_are_played() -> None:
    assert episodes_played(settle()) == 960
    assert episodes_played(settle("colab-demo")) == 640
    assert episodes_played(settle(max_steps="9")) == 5 * 24
    assert episodes_evaluated(settle(eval_seeds="2")) == 9


def test_the_disk_that_is_planned_holds_what_a_run_took() -> None:
    taken = 13_200_000  # logs, table, records and archive of 80 steps of the built-in preset

    assert taken <= disk_bytes(settle()) <= 1.5 * taken


@pytest.mark.parametrize("preset", ["tiny-cpu", "colab-demo", "h100-strong"])
def test_the_levers_are_settings_that_fit_each_other(preset: str) -> None:
    from molforge_train.preflight import check

    settings = settle(preset, output_root=str(Path(shipped_path("runs"))))
    told = levers(settings, is_gpu=True)
    values = dict(word.split("=") for word in told.replace(";", " ").replace(",", " ").split() if "=" in word)
    smaller = settings.model_copy(
        update={
            "max_completion_length": int(values["MAX_COMPLETION_LENGTH"]),
            "batch_size": int(values["RL_BATCH_SIZE"]),
            "gradient_accumulation": int(values["RL_GRAD_ACCUM"]),
            "sft_adapter_path": None,
        }
    )

    check(smaller, {})
    assert smaller.batch_size < settings.batch_size
    assert smaller.batch_size * smaller.gradient_accumulation == settings.batch_size * settings.gradient_accumulation
    assert smaller.max_completion_length == (300 if preset == "tiny-cpu" else 1024)
    assert ("--observation-length compact" in told) == (settings.observation_length == "full")
