"""How much memory a run will want, from shapes alone: each term with its formula, and what is free on this machine.

The base model's configuration and the headers of its files are read, its weights are not, and torch is not loaded. A
term that cannot be known is `None` with the reason. The formulas are those of the tested libraries: TRL 1.16 makes the
logits of an update in tiles and never in full, PEFT keeps the adapter in single precision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from molforge_env.interface import tool_schemas
from molforge_env.tools import ToolSession
from molforge_eval.model_loading import SMALL_MODEL, find_held
from molforge_eval.plan import standard_plan
from molforge_eval.policies import Loading
from molforge_eval.records.manifest import Configuration
from molforge_eval.weights import read_tensor_shapes, weight_files
from molforge_train.adapter_search import search_adapter
from molforge_train.config import shipped_path
from molforge_train.machine import Machine
from molforge_train.prompts import prompt_rows

NEW_RANK = 16
_SINGLE, _HALF, _DOUBLE = 4, 2, 8
_FOUR_BITS = 0.5 + 1 / 64 + 4 / (64 * 256)
"""Bytes of a number in NF4: four bits, a scale of one byte for 64 numbers, and one of four bytes for 256 of those."""
_TILE_TOKENS, _TILE_VOCABULARY = 4096, 32768
"""The largest tile of logits of an update (`trl.kernels.chunked_logprob`)."""
_SHORT = 1024
"""Tokens of an episode that the workflow falls back to."""
_CHARACTERS_A_TOKEN = 3
"""Of instructions and texts of the laboratory, in a large vocabulary; on the safe side."""
_LIBRARIES = 711 * 2**20
"""What torch, the host libraries and the laboratory take on a processor before training, measured on Linux."""
_CONTEXT = 600 * 2**20
"""What a CUDA process takes on its device before anything is put there; a usual figure, not measured here."""
_LOG_BYTES = 17
"""Bytes of logs, table and records for each token that an episode may have, measured on a run of the built-in model."""
_UNUSED_PARTS = {"visual", "mtp"}
"""Parts of a model that also sees, or drafts; only its text half is loaded."""
_NOT_ADAPTED = {"embed_tokens", "lm_head"}


class Term(NamedTuple):
    """One part of the estimate."""

    name: str
    size: int | None
    """In bytes; `None` when it is unknown."""
    formula: str
    """How it is computed, or why it is unknown."""
    phase: str = ""
    """The part of the run that takes it; empty for what is there all the time."""


class Estimate(NamedTuple):
    """What a run wants and what there is."""

    terms: tuple[Term, ...]
    peak: int | None
    peak_phase: str
    free: int | None
    free_where: str
    """Which memory is free, or why that is unknown."""


class Shapes(NamedTuple):
    """What the estimate needs of a base model."""

    parameters: int
    linear: int
    """Numbers of the linear layers, the ones that quantization makes smaller."""
    adapted: int
    """Numbers of a new adapter over all linear layers."""
    vocabulary: int
    hidden: int
    feed_forward: int
    queries: int
    keys: int
    layers: int
    cached_layers: int
    """Layers whose keys and values grow with the context; those of linear attention keep a state of fixed size."""


def estimate_memory(settings: Configuration, machine: Machine) -> Estimate:
    """Estimate the memory that a run takes at its peak.

    Args:
        settings: Device and number type may still be `auto`.
        machine: What is free, and whether `auto` means a GPU.
    """
    is_gpu = uses_gpu(settings, machine)
    wide = _HALF if settings.dtype == "bfloat16" or (settings.dtype == "auto" and is_gpu) else _SINGLE
    found = shapes_of(settings.base_model)
    terms = list(
        _known(settings, found, wide=wide, is_gpu=is_gpu, machine=machine)
        if isinstance(found, Shapes)
        else _unknown(found)
    )
    terms.append(
        Term("CUDA context", _CONTEXT, "a usual figure")
        if is_gpu
        else Term("libraries", _LIBRARIES, "torch, the host libraries and the laboratory, measured on Linux")
    )
    free, where = _free(machine, is_gpu=is_gpu)
    phases = [phase for phase in dict.fromkeys(term.phase for term in terms) if phase]
    if any(term.size is None for term in terms):
        return Estimate(tuple(terms), None, "", free, where)
    sizes = {phase: sum(term.size or 0 for term in terms if term.phase in ("", phase)) for phase in phases}
    worst = max(sizes, key=lambda phase: sizes[phase])
    return Estimate(tuple(terms), sizes[worst], worst, free, where)


def uses_gpu(settings: Configuration, machine: Machine) -> bool:
    """Tell whether a run would train on a GPU."""
    return settings.device == "cuda" or (settings.device == "auto" and machine.gpu is not None)


def shapes_of(name: str) -> Shapes | str:
    """Read the shapes of a base model, or say why they are unknown.

    Args:
        name: Folder or hub name; one of the hub is looked for among what was fetched before.
    """
    folder: Path | None = Path(shipped_path(name))
    if folder is None or not folder.is_dir():
        folder = find_held(name)
    if folder is None:
        return f"{name} is not on this machine yet; fetch it first: hf download {name}"
    try:
        config = orjson.loads((folder / "config.json").read_bytes())
        config = config.get("text_config") or config
        tensors: dict[str, tuple[int, ...]] = {}
        for path in weight_files(folder):
            tensors.update(read_tensor_shapes(path))
        return _shapes(config, tensors)
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        return f"the configuration of {name} says too little: {type(error).__name__} {error}"


def prompt_tokens(settings: Configuration) -> int:
    """Estimate the tokens of a prompt with its tools and the first observation, on the safe side."""
    row = prompt_rows(settings)[0]
    opening = ToolSession(observation_length=settings.observation_length).reset(
        suite=row["suite"], scenario_id=row["scenario_id"], seed=row["seed"], reward_mode=row["reward_mode"]
    )
    tools = orjson.dumps(tool_schemas(settings.observation_length))
    return (len(row["prompt"][0]["content"]) + len(opening) + len(tools)) // _CHARACTERS_A_TOKEN


def episodes_played(settings: Configuration) -> int:
    """Count the training episodes of a run."""
    batches = -(-settings.max_steps // settings.num_iterations)
    return batches * settings.batch_size * settings.gradient_accumulation


def episodes_evaluated(settings: Configuration) -> int:
    """Count the episodes of one evaluation."""
    plan = standard_plan(seeds=settings.eval_seeds)
    return sum(len(part.tasks) * len(part.seeds) for part in plan.parts)


def disk_bytes(settings: Configuration) -> int:
    """Estimate what run directory, archive and checkpoints take, if every episode is as long as it may be."""
    evaluations = settings.run_before_eval + settings.run_after_eval
    episodes = episodes_played(settings) + evaluations * episodes_evaluated(settings)
    # Two checkpoints of the adapter with both moments of the optimizer; the adapter again in the run and its archive.
    weights = (2 * 3 + 2) * _SINGLE * (adapter_parameters(settings) or 0)
    return episodes * settings.max_completion_length * _LOG_BYTES + weights


def adapter_parameters(settings: Configuration) -> int | None:
    """Count the numbers of the adapter that is trained; `None` when neither it nor the base model is at hand."""
    if settings.sft_adapter_path is not None:
        folder = search_adapter(settings.sft_adapter_path).folder
        if folder is not None:
            return _count(read_tensor_shapes(folder / "adapter_model.safetensors"))
    found = shapes_of(settings.base_model)
    return found.adapted if isinstance(found, Shapes) else None


def _known(settings: Configuration, base: Shapes, *, wide: int, is_gpu: bool, machine: Machine) -> Iterator[Term]:
    yield from _weight_terms(settings, base, wide=wide)
    context = prompt_tokens(settings) + settings.max_completion_length
    pair = 2 * base.cached_layers * base.keys * wide
    cache = f"{context:,} tokens x {base.cached_layers} layers x 2 x {base.keys:,} x {wide} bytes"
    if settings.vllm_mode == "colocate":
        yield _vllm_term(settings.vllm_gpu_memory_utilization, machine)
    elif settings.vllm_mode == "off":
        together = settings.batch_size * settings.gradient_accumulation
        yield Term("keys and values", together * context * pair, f"{together} episodes x {cache}", "generating")
    yield from _update_terms(settings, base, settings.batch_size * context, wide=wide, is_gpu=is_gpu)
    if settings.run_before_eval or settings.run_after_eval:
        second = _DOUBLE if not is_gpu and base.parameters <= SMALL_MODEL else wide
        yield Term(
            "second model",
            base.parameters * second,
            f"{base.parameters:,} numbers x {second} bytes: evaluation loads the model afresh",
            "evaluating",
        )
        rows = min(Loading().batch_size, episodes_evaluated(settings))
        pair = pair // wide * second
        yield Term("keys and values", rows * context * pair, f"{rows} episodes x {cache}", "evaluating")


def _weight_terms(settings: Configuration, base: Shapes, *, wide: int) -> Iterator[Term]:
    trained = adapter_parameters(settings) or base.adapted
    letters = "bfloat16" if wide == _HALF else "float32"
    if settings.load_in_4bit:
        # What is not quantized, PEFT brings to single precision before it trains, and Unsloth leaves as it is.
        each = wide if settings.use_unsloth else _SINGLE
        others = base.parameters - base.linear
        formula = f"{base.linear:,} numbers x 4.13 bits (NF4 and its scales) + {others:,} x {each} bytes"
        yield Term("base weights", round(base.linear * _FOUR_BITS) + others * each, formula)
    else:
        yield Term("base weights", base.parameters * wide, f"{base.parameters:,} numbers x {wide} bytes ({letters})")
    yield Term("adapter", trained * _SINGLE, f"{trained:,} numbers x 4 bytes (LoRA, single precision)")
    yield Term("gradients", trained * _SINGLE, f"{trained:,} numbers x 4 bytes")
    yield Term("optimizer", 2 * trained * _SINGLE, f"{trained:,} numbers x 2 moments x 4 bytes (Adam)")
    if settings.beta:
        yield Term("start adapter", trained * _SINGLE, f"{trained:,} numbers x 4 bytes (kept while beta > 0)")


def _update_terms(settings: Configuration, base: Shapes, micro: int, *, wide: int, is_gpu: bool) -> Iterator[Term]:
    # What a layer keeps of a token with LoRA over all its linear layers, counted on Qwen3.
    layer = (4 * base.hidden + 4 * base.feed_forward + 3 * (base.queries + base.keys) + 7 * NEW_RANK) * wide
    inside = "4 hidden + 4 feed-forward + 3 (queries + keys) + 7 rank"
    if {"auto": is_gpu, "on": True, "off": False}[settings.gradient_checkpointing]:
        kept = micro * (base.layers * base.hidden * wide + layer)
        formula = f"{micro:,} tokens x ({base.layers} layers x {base.hidden:,} + one layer of {inside}) x {wide} bytes"
        yield Term("activations", kept, f"{formula} (gradient checkpointing is on)", "updating")
    else:
        formula = f"{micro:,} tokens x ({base.layers} layers + 1) x ({inside}) x {wide} bytes"
        yield Term("activations", micro * (base.layers + 1) * layer, formula, "updating")
    rows, columns = min(micro, _TILE_TOKENS), min(base.vocabulary, _TILE_VOCABULARY)
    full = size_text(micro * base.vocabulary * _SINGLE)
    yield Term(
        "logits",
        2 * rows * columns * _SINGLE,
        f"a tile of {rows:,} tokens x {columns:,} of {base.vocabulary:,} words x 4 bytes, and its gradient; in "
        f"full, as a TRL without tiles makes them, they are {full}",
        "updating",
    )


def _vllm_term(share: float, machine: Machine) -> Term:
    whole = None if machine.gpu is None else machine.gpu.memory_bytes
    formula = f"{share:.0%} of the GPU: VLLM_GPU_MEMORY_UTILIZATION, for its own weights and its keys and values"
    if whole is None:
        return Term("vLLM", None, f"{formula}; how large the GPU is, is unknown")
    return Term("vLLM", round(share * whole), formula)


def _unknown(reason: str) -> Iterator[Term]:
    yield Term("base model and all else", None, reason)


def _free(machine: Machine, *, is_gpu: bool) -> tuple[int | None, str]:
    if not is_gpu:
        free = machine.free_memory_bytes
        return free, "main memory" if free is not None else "the system does not say what is free"
    if machine.gpu is None:
        return None, "this machine has no GPU that torch can use"
    free = machine.gpu.free_bytes
    return free, machine.gpu.name if free is not None else f"the driver of {machine.gpu.name} does not say what is free"


def _shapes(config: Mapping[str, Any], tensors: Mapping[str, tuple[int, ...]]) -> Shapes:
    heads = config["num_attention_heads"]
    head = config.get("head_dim") or config["hidden_size"] // heads
    layers = config["num_hidden_layers"]
    kinds = config.get("layer_types") or ["full_attention"] * layers
    used = {name: shape for name, shape in tensors.items() if not _UNUSED_PARTS & {*name.split(".")}}
    linear = [
        shape
        for name, shape in used.items()
        if name.endswith(".weight") and len(shape) == 2 and not _NOT_ADAPTED & {*name.split(".")}
    ]
    return Shapes(
        parameters=_count(used),
        linear=sum(math.prod(shape) for shape in linear),
        adapted=NEW_RANK * sum(sum(shape) for shape in linear),
        vocabulary=config["vocab_size"],
        hidden=config["hidden_size"],
        feed_forward=config.get("intermediate_size") or 4 * config["hidden_size"],
        queries=heads * head,
        keys=(config.get("num_key_value_heads") or heads) * head,
        layers=layers,
        cached_layers=sum(kind != "linear_attention" for kind in kinds),
    )


def _count(tensors: Mapping[str, tuple[int, ...]]) -> int:
    return sum(math.prod(shape) for shape in tensors.values())


def size_text(size: int | None) -> str:
    """Write a number of bytes with a unit.

    >>> size_text(3 * 2**29), size_text(2**20), size_text(2048), size_text(None)
    ('1.5 GiB', '1 MiB', '2 KiB', 'unknown')
    """
    if size is None:
        return "unknown"
    if size >= 2**30:
        return f"{size / 2**30:,.1f} GiB"
    return f"{size / 2**20:,.0f} MiB" if size >= 2**20 else f"{size / 2**10:,.0f} KiB"


def levers(settings: Configuration, *, is_gpu: bool) -> str:
    """Say in one line what makes a run smaller, by the names of the settings.

    Args:
        settings: The run that did not fit, or would not.
        is_gpu: It trains on a GPU.
    """
    batch, episodes = settings.batch_size, settings.batch_size * settings.gradient_accumulation
    longest = settings.max_completion_length
    told = [f"MAX_COMPLETION_LENGTH={_SHORT if longest > _SHORT else longest // 2}"]
    if settings.observation_length == "full":
        told[0] += " with --observation-length compact, which such episodes need"
    fitting = [size for size in range(1, batch) if episodes % size == 0]
    whole = [size for size in fitting if size % settings.num_generations == 0]
    if fitting:
        smaller = max(whole or fitting)
        told.append(
            f"RL_BATCH_SIZE={smaller} with RL_GRAD_ACCUM={episodes // smaller}, their product a multiple of "
            f"NUM_GENERATIONS={settings.num_generations}"
        )
    if settings.gradient_checkpointing == "off":
        told.append("GRADIENT_CHECKPOINTING=on")
    if is_gpu and not settings.load_in_4bit:
        told.append("LOAD_IN_4BIT=1 on an NVIDIA GPU")
    return "; ".join([*told, "a smaller base model"])
