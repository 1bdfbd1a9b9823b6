"""Loads a model and merges its adapter, from a folder or from the hub.

Keys of an adapter that the model does not have are refused: the library's loader only warns of them, and the model
would play as if untrained. No pickle is loaded and no code of a model is run.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from molforge_env.errors import UnreadableError, UsageError
from molforge_eval.checks.factors import plain_name
from molforge_eval.policies import DTypeName, Loading, PolicySpec
from molforge_eval.weights import AdapterFiles, base_model_digest, read_adapter, tokenizer_digest

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Value = TypeVar("Value")
SMALL_MODEL = 20_000_000
"""Parameters up to which double precision is cheap enough to be the default on a processor."""
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "bad_alloc", "status_alloc_failed")
"""As the interpreter, torch's allocators, the C++ library and the libraries of CUDA say it."""
_WHOLE_MODEL = "Give a folder with config.json, safetensors weights and a tokenizer."
_MODEL_FILES = ("*.safetensors", "*.safetensors.index.json", "*.json", "*.jinja", "merges.txt", "tokenizer.model")


class Loaded(NamedTuple):
    """A model that is ready, its adapter merged."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    base_sha256: str
    adapter_sha256: str | None
    tokenizer_sha256: str
    dtype: str


def load_model(spec: PolicySpec, loading: Loading, *, check_tokenizer: Callable[[Any], object] | None = None) -> Loaded:
    """Load the model of a policy, ready to play.

    Args:
        spec: Base model and adapter.
        loading: Device, number type and whether the adapter is merged.
        check_tokenizer: Is given the tokenizer before any weight is read, and raises what it has against it.

    Raises:
        UsageError: Model or adapter are absent, or do not fit each other.
        UnreadableError: A file is damaged, or a pointer in place of the weights.
    """
    base = find_folder(spec.name, "model")
    adapter = None if spec.adapter is None else read_adapter(find_folder(spec.adapter, "adapter"))
    base_sha256 = base_model_digest(base)
    device = _device(loading.device)
    with _silent_host():
        tokenizer = _read_tokenizer(base)
        if check_tokenizer is not None:
            check_tokenizer(tokenizer)
        model = _read_base(base, _dtype(loading.dtype, device))
    is_small = loading.dtype == "auto" and device == "cpu" and model.num_parameters() <= SMALL_MODEL
    if is_small or loading.dtype == "float64":
        model = model.double()
    if adapter is not None:
        with _silent_host():
            model = fit_adapter(model, adapter)
            model = model.merge_and_unload() if loading.merged else model
    model = model.to(device).eval()
    return Loaded(
        model=model,
        tokenizer=tokenizer,
        base_sha256=base_sha256,
        adapter_sha256=None if adapter is None else adapter.sha256,
        tokenizer_sha256=tokenizer_digest(base),
        dtype=str(model.dtype).removeprefix("torch."),
    )


def _read_tokenizer(base: Path) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(base, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        what = f"the model {base.name} cannot be loaded: {_first_line(error)}"
        raise UnreadableError(what, where=str(base), mend=_WHOLE_MODEL) from error


def _read_base(base: Path, dtype: Any) -> Any:
    from transformers import AutoModelForCausalLM

    try:
        found: Any = AutoModelForCausalLM.from_pretrained(
            base,
            dtype=dtype,
            attn_implementation="sdpa",
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
        model, notes = found
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        raise UnreadableError(
            f"the model {base.name} cannot be loaded: {_first_line(error)}", where=str(base), mend=_WHOLE_MODEL
        ) from error
    # The library fills what is missing with random numbers, and only warns.
    missing = sorted(str(key) for key in notes["missing_keys"])
    if missing:
        raise UnreadableError(
            f"the model {base.name} lacks {missing[0]}; {len(missing)} weights are missing",
            where=str(base),
            mend=_WHOLE_MODEL,
        )
    return model


@contextmanager
def _silent_host() -> Iterator[None]:
    """Keep the libraries' bars, and what they say to each other of names that will change, from the user."""
    from transformers.utils import logging as host_logging

    shown = host_logging.is_progress_bar_enabled()
    host_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        if shown:
            host_logging.enable_progress_bar()


def fit_adapter(model: Any, adapter: AdapterFiles, *, trainable: bool = False) -> Any:
    """Put an adapter beside the weights of a model.

    Args:
        model: The base.
        adapter: Its tensors may be spelled as PEFT or as Unsloth writes them.
        trainable: Whether the adapter's weights are to be trained on.

    Raises:
        UsageError: The adapter's keys or shapes are not those that the model gives it.
    """
    from peft import PeftConfig, PeftModel, get_peft_model_state_dict, set_peft_model_state_dict
    from safetensors.torch import load_file

    try:
        config = PeftConfig.from_pretrained(str(adapter.folder))
        config.inference_mode = not trainable
        if isinstance(config.target_modules, set | list):
            # Full names are those of the model that was trained, which may have been one that also sees.
            config.target_modules = {plain_name(name) for name in config.target_modules}
        wrapped = PeftModel(model, config)
    except (ValueError, TypeError, KeyError) as error:
        raise _misfit(adapter, f"its configuration does not fit: {_first_line(error)}") from error
    wanted = {key: tuple(weights.shape) for key, weights in get_peft_model_state_dict(wrapped).items()}
    weights = renamed(load_file(adapter.weights), wanted)
    odd = sorted(set(weights) ^ set(wanted))
    if odd:
        kind = "is no key of the model" if odd[0] in weights else "is missing from the adapter"
        raise _misfit(adapter, f"{odd[0]} {kind}; {len(odd)} of {len(set(weights) | set(wanted))} keys do not match")
    bent = sorted(key for key in wanted if tuple(weights[key].shape) != wanted[key])
    if bent:
        raise _misfit(
            adapter,
            f"{bent[0]} has shape {list(weights[bent[0]].shape)}, the model wants {list(wanted[bent[0]])}; "
            f"{len(bent)} of {len(wanted)} shapes do not match",
        )
    set_peft_model_state_dict(wrapped, weights)
    return wrapped


def renamed(weights: Mapping[str, Value], wanted: Iterable[str]) -> dict[str, Value]:
    """Give tensors the names that a model has for them, where a writer put other words around the same ones.

    Args:
        weights: By the names of the file.
        wanted: Names that the model has; each tensor that is none of theirs, by any spelling, keeps its own.
    """
    own = {plain_name(name): name for name in wanted}
    return {own.get(plain_name(name), name): tensor for name, tensor in weights.items()}


def _misfit(adapter: AdapterFiles, why: str) -> UsageError:
    return UsageError(
        f"the adapter {adapter.folder.name} does not fit the model: {why}",
        where=str(adapter.weights),
        mend=f"Give the base model that it was trained on: {adapter.config['base_model_name_or_path']}.",
    )


@contextmanager
def few_threads(loaded: Loaded) -> Iterator[None]:
    """Run a small model on one thread: several wait for each other for longer than they compute."""
    import torch

    threads = torch.get_num_threads()
    if loaded.model.num_parameters() <= SMALL_MODEL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether torch, a library of the device or the interpreter ran out of memory."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(words in text for words in _OUT_OF_MEMORY)


def find_folder(name: str, what: str) -> Path:
    """Find the folder of a model or an adapter, on this machine or on the hub.

    Args:
        name: A folder, or a hub name.
        what: `model` or `adapter`.

    Raises:
        UsageError: It is nowhere.
    """
    given = Path(name).expanduser()
    # A path that begins with a package of ours means the installed one, wherever the command is run.
    shipped = Path(__file__).resolve().parent.parent / name
    looked = [given, shipped] if name.startswith("molforge_train/") else [given]
    found = next((path for path in looked if path.is_dir()), None)
    if found is not None:
        return found
    places = ", ".join(str(path) for path in looked)
    if given.is_absolute() or name.startswith((".", "~", "molforge_train/")) or name.count("/") != 1:
        raise UsageError(
            f"there is no {what} at {name}",
            where=f"looked for the folder {places}",
            mend=f"Give the folder of the {what}, or its name on the hub as OWNER/NAME.",
        )
    return _fetch(name, what, places)


def _fetch(name: str, what: str, places: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=list(_MODEL_FILES)))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise UsageError(
            f"there is no {what} {name}: {_first_line(error)}",
            where=f"looked for the folder {places} and on the hub",
            mend="Check the name, or fetch the files first and give their folder.",
        ) from error


def find_held(name: str) -> Path | None:
    """Find the files of a model that is on this machine, a folder or one of the hub; `None` without its weights."""
    given = Path(name).expanduser()
    folder = given if given.is_dir() else find_cached(name)
    return folder if folder is not None and any(folder.glob("*.safetensors")) else None


def find_cached(name: str) -> Path | None:
    """Find a model of the hub that was fetched before; nothing is asked of the network."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=list(_MODEL_FILES), local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError, OSError):
        return None


def _device(name: str) -> str:
    import torch

    if name != "auto":
        return name
    return "cuda" if torch.cuda.is_available() else "cpu"


def _dtype(name: DTypeName, device: str) -> Any:
    import torch

    if name == "auto":
        return torch.float32 if device == "cpu" else "auto"
    if name == "float64":
        # Doubled after it is read: a model that is built in double precision has other rotary angles in the last bits.
        return torch.float32
    return getattr(torch, name)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
