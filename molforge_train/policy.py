"""The policy that is trained: base model, tokenizer and the LoRA adapter that training goes on from.

What a loader would only warn of is refused here: adapter tensors that the model has no place for, a chat template whose
tool calls cannot be parsed, nothing to train.
"""

from __future__ import annotations

import hashlib
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from molforge_env.errors import UnreadableError, UsageError
from molforge_eval.model_loading import fit_adapter
from molforge_eval.records.manifest import Configuration
from molforge_eval.weights import read_adapter
from molforge_train.adapter_search import adapter_folder
from molforge_train.config import shipped_path

if TYPE_CHECKING:
    from peft import PeftModel
    from torch.nn import Module
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from molforge_eval.chat_form import TokenizerForm

_NEW_ADAPTER: dict[str, Any] = {"r": 16, "lora_alpha": 32, "target_modules": "all-linear", "task_type": "CAUSAL_LM"}
"""Adapter of a run that goes on from none."""
_LONGEST_PROMPT = 4096
"""Tokens that are left for a prompt where a loader wants to know the longest text."""


class Place(NamedTuple):
    """Where to train and in which numbers."""

    device: str
    dtype: str
    accelerator: str | None
    """Name of the device's model; `None` for the processor."""


PROCESSOR = Place("cpu", "float32", None)


class Base(NamedTuple):
    """A model before it is adapted."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase


class Policy(NamedTuple):
    """What the host trainer trains."""

    model: PeftModel
    tokenizer: PreTrainedTokenizerBase
    form: TokenizerForm
    """How the tokenizer spells a conversation, chosen as the host chooses it."""
    trainable: int
    total: int


def choose_place(device: str, dtype: str, processes: int = 1) -> Place:
    """Settle `auto` for device and number type.

    Args:
        device: As asked for.
        dtype: As asked for.
        processes: How many there are; each takes one device.

    Raises:
        UsageError: The device that was asked for is not there, or several would be used at once.
    """
    import torch

    found = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if device == "auto":
        device = next(name for name, there in found.items() if there)
    if not found[device]:
        raise UsageError(
            f"this machine has no {device} device that torch can use",
            where="configuration key device",
            mend="Set --device cpu, or install the torch build for your device.",
        )
    if device == "cuda" and torch.cuda.device_count() > 1 and processes == 1:
        raise UsageError(
            f"{torch.cuda.device_count()} devices are visible, and one process uses one",
            where="CUDA_VISIBLE_DEVICES",
            mend="Make one visible (CUDA_VISIBLE_DEVICES=0), or start a process for each: docs/scale.md says how.",
        )
    if dtype == "auto":
        dtype = (
            "bfloat16" if device == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
        )
    return Place(device, dtype, torch.cuda.get_device_name(0) if device == "cuda" else None)


def load_base(name: str, dtype: str, *, side: Literal["left", "right"], engine: Configuration | None = None) -> Base:
    """Load tokenizer and base model, in this order: a template that cannot be used costs no weights.

    Args:
        name: Folder or hub name.
        dtype: Number type of the weights.
        side: Where the tokenizer pads and cuts.
        engine: Says whether the weights are loaded in 4 bits, and by whom; plainly when absent.

    Raises:
        UsageError: The chat template is none that the host trainer can read calls of.
        UnreadableError: The model cannot be found or read.
    """
    from transformers import AutoTokenizer

    from molforge_eval.model_policy import settle_template

    path = shipped_path(name)
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, padding_side=side, truncation_side=side)
        settle_template(tokenizer)
        return Base(_load_weights(path, dtype, engine), tokenizer)
    except (OSError, ValueError) as error:
        raise UnreadableError(
            f"the base model {name} cannot be loaded: {str(error).splitlines()[0]}",
            where="configuration key base_model",
            mend="Give the folder of a saved model, or a hub name that this machine can reach.",
        ) from error


def _load_weights(path: str, dtype: str, engine: Configuration | None) -> Any:
    import torch
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    kind = getattr(torch, dtype)
    if engine is not None and engine.use_unsloth:
        loader = import_module("unsloth").FastLanguageModel
        length = engine.max_completion_length + _LONGEST_PROMPT
        return loader.from_pretrained(path, max_seq_length=length, dtype=kind, load_in_4bit=engine.load_in_4bit)[0]
    if engine is None or not engine.load_in_4bit:
        return AutoModelForCausalLM.from_pretrained(path, dtype=kind)
    from peft import prepare_model_for_kbit_training

    bits = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=kind, bnb_4bit_use_double_quant=True
    )
    place = {"": torch.cuda.current_device()}
    model = AutoModelForCausalLM.from_pretrained(path, dtype=kind, quantization_config=bits, device_map=place)
    return prepare_model_for_kbit_training(model, use_gradient_checkpointing=engine.gradient_checkpointing != "off")


def load_policy(configuration: Configuration, place: Place) -> Policy:
    """Load base model, tokenizer and adapter.

    Raises:
        UsageError: The model cannot be found, or its chat template or adapter does not fit.
        UnreadableError: The model cannot be found or read.
    """
    from molforge_eval.model_policy import chat_form

    model, tokenizer = load_base(configuration.base_model, place.dtype, side="left", engine=configuration)
    form = chat_form(model, tokenizer, configuration.observation_length)
    adapted = _adapt(model, configuration)
    counts = [(weight.numel(), weight.requires_grad) for weight in adapted.parameters()]
    trainable = sum(count for count, trained in counts if trained)
    if trainable == 0:
        raise UsageError(
            "the adapter has no trainable parameter",
            where="configuration key sft_adapter_path",
            mend="Give a LoRA adapter.",
        )
    return Policy(adapted, tokenizer, form, trainable, sum(count for count, _ in counts))


def _adapt(model: Any, configuration: Configuration) -> Any:
    import torch
    from peft import LoraConfig, get_peft_model

    if configuration.sft_adapter_path is None:
        torch.manual_seed(configuration.seed)
        return get_peft_model(model, LoraConfig(**_NEW_ADAPTER))
    return fit_adapter(model, read_adapter(adapter_folder(configuration.sft_adapter_path)), trainable=True)


def weights_digest(model: Module) -> str:
    """Hash the weights that training moves, in single precision: equal weights give equal digests.

    Args:
        model: A model with an adapter.
    """
    import torch

    digest = hashlib.sha256()
    for name, weights in sorted(model.named_parameters()):
        if weights.requires_grad:
            digest.update(name.encode())
            digest.update(weights.detach().to("cpu", torch.float32).numpy().tobytes())
    return digest.hexdigest()
