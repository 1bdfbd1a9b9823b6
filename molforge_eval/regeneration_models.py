"""The model that an evaluation names, found on this machine, held to its recorded hashes, and loaded.

A run's words choose nothing that is fetched or opened: a base model by its recorded name is one that this installation
ships or that the hub's cache holds already, and any other is the reader's to name. The adapter after training is the
run's own file, copied and hashed on the way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, get_args

from molforge_env.errors import MolForgeError, UnreadableError, UsageError
from molforge_eval import layout
from molforge_eval.canonical import sha256_hex
from molforge_eval.catalogue import finding, printable, seen, short
from molforge_eval.findings import Finding
from molforge_eval.ledger import Ledger
from molforge_eval.model_loading import Loaded, few_threads, find_cached, is_out_of_memory, load_model
from molforge_eval.policies import DTypeName, Loading, PolicySpec
from molforge_eval.record_files import read_json
from molforge_eval.records.evaluation import EvaluationPlan, PolicyIdentity
from molforge_eval.regenerated_episode import Speaker, speaker_of
from molforge_eval.run_directory import RunDirectory
from molforge_eval.scratch import scratch
from molforge_eval.trusted_adapter import copy_weights, write_settings
from molforge_eval.weights import base_model_digest, read_adapter

_SHIPPED = re.compile(r"molforge_train/models(?:/[A-Za-z0-9_-]{1,80}){1,3}")
_HUB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")


class Wish(NamedTuple):
    """What may be used besides the run."""

    base: Path | None = None
    """Folder of the base model; `None` for the one that the run names, if it is here."""
    input_adapter: Path | None = None
    """Folder of the adapter that the run began with; `None` as above."""
    device: str = "auto"


class Obstacle(Exception):  # noqa: N818 - what stands in the way is a finding, and no fault of the caller
    """Why an evaluation cannot be played again."""

    def __init__(self, found: Finding) -> None:
        super().__init__(found.what)
        self.finding = found


@contextmanager
def recorded_speaker(run: RunDirectory, path: str, wish: Wish) -> Iterator[Speaker]:
    """Load the model that an evaluation names, for as long as it is asked to speak.

    Args:
        run: The run.
        path: The evaluation: `layout.BEFORE` or `layout.AFTER`.
        wish: What may be used besides the run.

    Raises:
        Obstacle: The model is not here, is another one, or cannot be loaded.
        UsageError: The memory does not hold the model.
    """
    evaluation = dict(run.evaluations())[path]
    policy = evaluation.policy
    _check_identity(path, policy)
    base = _base(path, policy, wish)
    with scratch("model") as folder:
        adapter = _adapter(run, path, policy, wish, base, folder / "adapters")
        speaker = _load(path, policy, evaluation.plan, base, adapter, wish)
        with few_threads(speaker.loaded):
            yield speaker


def out_of_memory() -> UsageError:
    """Say that the machine is too small for the model."""
    return UsageError(
        "out of memory with one episode at a time",
        where="regeneration of an evaluation",
        mend="Name another device, such as --device cpu, or use a machine with more memory.",
    )


def _obstacle(code: str, what: str, path: str, key: str) -> Obstacle:
    return Obstacle(finding(code, what, file=path, pointer=f"/policy/{key}"))


def _check_identity(path: str, policy: PolicyIdentity) -> None:
    if policy.kind != "hf":
        what = f"the episodes were played by {seen(policy.name)}, which is a script and no model"
        raise _obstacle("REGENERATION_IMPOSSIBLE", what, path, "kind")
    if policy.base_model_sha256 is None:
        raise _obstacle("REGENERATION_IMPOSSIBLE", "the base model has no hash", path, "base_model_sha256")
    if policy.dtype not in get_args(DTypeName) or policy.dtype == "auto":
        what = f"dtype {seen(policy.dtype)} is not one that a model can be loaded in"
        raise _obstacle("REGENERATION_IMPOSSIBLE", what, path, "dtype")


def _base(path: str, policy: PolicyIdentity, wish: Wish) -> Path:
    """Find the base model and hold it to its recorded hash."""
    name = policy.base_model or ""
    what = f"the base model {seen(name)} is neither shipped with this installation nor in the cache of the hub"
    folder = _find(name, wish.base, _obstacle("REGENERATION_BASE_MISSING", what, path, "base_model"))
    try:
        found = base_model_digest(folder)
    except MolForgeError as error:
        what = f"the base model {seen(name)} cannot be read: {error.what}"
        raise _obstacle("REGENERATION_BASE_MISSING", what, path, "base_model") from error
    recorded = policy.base_model_sha256 or "none"
    if found != recorded:
        what = f"the base model {folder.name} has hash {short(found)}, the record has {short(recorded)}"
        raise _obstacle("REGENERATION_BASE_DIFFERS", what, path, "base_model_sha256")
    return folder


def _find(name: str, named: Path | None, missing: Obstacle) -> Path:
    """Find a folder of weights: the one that the reader named, else the one of the record where it is here."""
    folder = named or _shipped(name) or _cached(name)
    if folder is None:
        raise missing
    return folder


def _shipped(name: str) -> Path | None:
    if _SHIPPED.fullmatch(name) is None:
        return None
    folder = Path(__file__).resolve().parent.parent / name
    return folder if folder.is_dir() else None


def _cached(name: str) -> Path | None:
    return find_cached(name) if _HUB_NAME.fullmatch(name) is not None else None


def _adapter(
    run: RunDirectory, path: str, policy: PolicyIdentity, wish: Wish, base: Path, scratch: Path
) -> Path | None:
    """Make a folder with the recorded adapter; `None` when the base model played by itself."""
    if path == layout.AFTER:
        _copy_own(run, policy, base, scratch)
        return scratch
    if policy.adapter_sha256 is None:
        return None
    name = policy.adapter or ""
    what = f"the adapter {seen(name)} that the run began with is not here"
    folder = _find(name, wish.input_adapter, _obstacle("REGENERATION_PARTIAL", what, path, "adapter"))
    try:
        found = read_adapter(folder)
        if found.sha256 != policy.adapter_sha256:
            recorded = short(policy.adapter_sha256)
            what = f"the adapter {folder.name} has hash {short(found.sha256)}, the record has {recorded}"
            raise _obstacle("REGENERATION_PARTIAL", what, path, "adapter_sha256")
        scratch.mkdir()
        with found.weights.open("rb") as source:
            copy_weights(source, scratch, at_most=found.weights.stat().st_size)
        write_settings(found.config, scratch, base=base)
    except MolForgeError as error:
        what = f"the adapter {folder.name} that the run began with cannot be used: {error.what}"
        raise _obstacle("REGENERATION_PARTIAL", what, path, "adapter") from error
    return scratch


def _copy_own(run: RunDirectory, policy: PolicyIdentity, base: Path, scratch: Path) -> None:
    """Copy the run's own adapter."""
    weights = layout.ADAPTER_WEIGHTS
    output = None if run.manifest is None else run.manifest.output_adapter
    if policy.adapter_sha256 is None or output is None or weights not in run.files:
        what = "the run holds no adapter that could play again"
        raise _obstacle("REGENERATION_IMPOSSIBLE", what, layout.AFTER, "adapter_sha256")
    settings = read_json(run.files, layout.ADAPTER_CONFIG, Ledger(), run.limits).value
    scratch.mkdir()
    try:
        with run.files.open(weights) as source:
            found = copy_weights(source, scratch, at_most=run.files.sizes[weights])
        if found != policy.adapter_sha256:
            what = f"the weights have hash {short(found)}, the evaluation was played by {short(policy.adapter_sha256)}"
            raise Obstacle(finding("REGENERATION_ADAPTER_UNFIT", what, file=weights))
        write_settings(settings if isinstance(settings, dict) else {}, scratch, base=base)
    except (MolForgeError, OSError) as error:
        what = f"the adapter cannot be loaded: {error.what if isinstance(error, MolForgeError) else error.strerror}"
        raise Obstacle(finding("REGENERATION_ADAPTER_UNREAD", what, file=weights)) from error


def _load(
    path: str, policy: PolicyIdentity, plan: EvaluationPlan, base: Path, adapter: Path | None, wish: Wish
) -> Speaker:
    dtype: Any = policy.dtype
    loading = Loading(dtype=dtype, device=wish.device, batch_size=1, merged=policy.adapter_merged is not False)
    spec = PolicySpec("hf", str(base), None if adapter is None else str(adapter))
    try:
        loaded = load_model(spec, loading)
        speaker = speaker_of(loaded, plan)
    except UnreadableError as error:
        raise _obstacle("REGENERATION_BASE_MISSING", error.what, path, "base_model") from error
    except UsageError as error:
        raise _obstacle("REGENERATION_ADAPTER_UNFIT", error.what, path, "adapter") from error
    except Exception as error:
        if is_out_of_memory(error):
            raise out_of_memory() from error
        # The boundary of a model library: weights that it cannot take must not hide what else was found.
        what = f"the adapter cannot be loaded: {type(error).__name__}: {error}"
        raise _obstacle("REGENERATION_ADAPTER_UNFIT", printable(what), path, "adapter") from error
    _check_loaded(path, policy, loaded, speaker)
    return speaker


def _check_loaded(path: str, policy: PolicyIdentity, loaded: Loaded, speaker: Speaker) -> None:
    template = sha256_hex(speaker.form.template.encode())
    for key, found, recorded in (
        ("tokenizer_sha256", loaded.tokenizer_sha256, policy.tokenizer_sha256),
        ("chat_template_sha256", template, policy.chat_template_sha256),
    ):
        if found != recorded:
            name = key.removesuffix("_sha256").replace("_", " ")
            other = "none" if recorded is None else short(recorded)
            what = f"the {name} of the base model has hash {short(found)}, the record has {other}"
            raise _obstacle("REGENERATION_BASE_DIFFERS", what, path, key)
