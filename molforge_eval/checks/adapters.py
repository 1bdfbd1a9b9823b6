"""The delivered adapter, looked at without torch and without a pickle: settings, header, tensors, identity."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from molforge_eval import layout
from molforge_eval.catalogue import finding, seen, short
from molforge_eval.checks.factors import (
    Factor,
    factor_of,
    is_beside,
    is_targeted,
    is_whole_name,
    ranks_of,
    target_names,
)
from molforge_eval.checks.tensors import Values, digest_of, read_header, scan_values
from molforge_eval.findings import Finding
from molforge_eval.ledger import Ledger
from molforge_eval.record_files import read_json
from molforge_eval.records.manifest import AdapterIdentity
from molforge_eval.run_directory import RunDirectory
from molforge_eval.sealing import checksum_of
from molforge_eval.shape import shape_of

Config = Mapping[str, Any]


def check(run: RunDirectory) -> Iterator[Finding]:
    """Look at the settings and the weights of the adapter, and at what the manifest says of them."""
    config = yield from _check_config(run)
    tensors = yield from _check_weights(run, config)
    yield from _check_manifest(run, tensors)


def _check_config(run: RunDirectory) -> Generator[Finding, None, Config | None]:
    """Check the settings; give them, or `None` when they are not known."""
    path = layout.ADAPTER_CONFIG
    if path not in run.files:
        return None
    ledger = Ledger(run.limits.findings_a_code)
    parsed = read_json(run.files, path, ledger, run.limits)
    yield from ledger.findings()
    if not parsed.usable:
        return None
    value: Config = parsed.value
    shape = shape_of("adapter_config")
    if not shape.fits(value):
        for misfit in shape.explain(value):
            yield finding("SCHEMA_UNMET", misfit.what, file=path, pointer=misfit.pointer)
        return None
    if not value["target_modules"] and not value.get("target_parameters"):
        what = f"value {seen(value['target_modules'])} names no module"
        yield finding("SCHEMA_UNMET", what, file=path, pointer="/target_modules")
        return None
    if value.get("lora_alpha") == 0 and not value.get("alpha_pattern"):
        what = "lora_alpha is 0, so every product of factors is multiplied by 0: the adapter changes nothing"
        yield finding("ADAPTER_ZERO", what, file=path, pointer="/lora_alpha")
    yield from _check_base(run, value)
    return value


def _check_base(run: RunDirectory, config: Config) -> Iterator[Finding]:
    """The adapter belongs on the model that the manifest names."""
    stated = config["base_model_name_or_path"]
    if run.manifest is None or stated is None:
        return
    trained = run.manifest.configuration.base_model
    if _bare(stated) != _bare(trained):
        what = f"the adapter was made for {seen(stated)}, the run trained {seen(trained)}"
        yield finding("ADAPTER_BASE_DIFFERS", what, file=layout.ADAPTER_CONFIG, pointer="/base_model_name_or_path")


def _bare(model: str) -> str:
    """Spell a model without its owner, its folder and the marks of a quantised copy."""
    name = model.replace("\\", "/").rstrip("/").rpartition("/")[2].lower()
    for mark in ("-unsloth", "-bnb", "-4bit", "-8bit"):
        name = name.replace(mark, "")
    return name


def _check_weights(run: RunDirectory, config: Config | None) -> Generator[Finding, None, str | None]:
    """Check the weights; give the digest of their tensors, or `None` where they cannot be read."""
    path = layout.ADAPTER_WEIGHTS
    if path not in run.files:
        is_named = run.manifest is not None and run.manifest.output_adapter is not None
        shards = sorted(name for name in run.files.sizes if _is_shard(name))
        if shards:
            what = f"the weights stand in {len(shards)} shards, the first is {shards[0]}; one file is read"
            yield finding("WEIGHTS_MISSING", what, file=path)
        elif (is_named or layout.ADAPTER_CONFIG in run.files) and not run.may_lack(path):
            what = "the manifest names an adapter and there are no weights" if is_named else "there are no weights"
            yield finding("WEIGHTS_MISSING", what, file=path)
        return None
    try:
        with run.files.open(path) as handle:
            header = read_header(handle, run.files.sizes[path], run.limits)
            yield from header.findings
            if header.tensors is not None:
                found = {name: scan_values(handle, header.start, header.tensors[name]) for name in header.tensors}
                yield from _check_tensors(header.tensors, found, config or {})
                yield from _check_count(run, header.tensors)
                return digest_of(header.tensors, found)
    except OSError as error:
        yield finding("FILE_UNREADABLE", f"the file cannot be read: {error.strerror or error}", file=path)
    return None


def _is_shard(path: str) -> bool:
    return path.startswith(f"{layout.ADAPTER_FOLDER}/") and path.endswith(".safetensors") and "-of-" in path


def _check_tensors(tensors: Mapping[str, Any], found: Mapping[str, Values], config: Config) -> Iterator[Finding]:
    path = layout.ADAPTER_WEIGHTS
    if not tensors:
        yield finding("ADAPTER_EMPTY", "the file holds no tensor", file=path)
        return
    factors: dict[str, Factor] = {}
    for name, entry in sorted(tensors.items()):
        if found[name].broken:
            what = f"{found[name].broken} values of tensor {seen(name)} are not finite"
            yield finding("WEIGHTS_NOT_FINITE", what, file=path, pointer=name)
        factor = factor_of(name, entry["shape"])
        if factor is not None:
            factors[name] = factor
    yield from _check_keys(factors, config)
    yield from _check_ranks(factors, config)
    yield from _check_effect(found, factors)


def _check_keys(factors: Mapping[str, Factor], config: Config) -> Iterator[Finding]:
    """Every module has both factors, and is one of those that the settings name."""
    path = layout.ADAPTER_WEIGHTS
    if not factors:
        what = "no tensor is a factor of an adapter: the loader would find none of its keys, and only warn"
        yield finding("ADAPTER_KEYS_DIFFER", what, file=path)
        return
    sides: dict[str, set[str]] = {}
    for factor in factors.values():
        sides.setdefault(factor.module, set()).add(factor.side)
    targets = target_names(config)
    halves = sorted(module for module, own in sides.items() if len(own) == 1)
    foreign = [] if targets is None else sorted(module for module in sides if not is_targeted(module, targets))
    absent = sorted(target for target in targets or () if is_whole_name(target) and not _is_present(target, sides))
    for modules, words in (
        (halves, "has one factor of two"),
        (foreign, "is none of target_modules"),
        (absent, "is one of target_modules and has no factors"),
    ):
        if modules:
            what = f"module {seen(modules[0])} {words}; {len(modules)} of {len(sides)} modules do not match"
            yield finding("ADAPTER_KEYS_DIFFER", what, file=path, pointer=modules[0])


def _is_present(target: str, sides: Mapping[str, set[str]]) -> bool:
    return target in sides or any(module.endswith(f".{target}") for module in sides)


def _check_ranks(factors: Mapping[str, Factor], config: Config) -> Iterator[Finding]:
    path = layout.ADAPTER_WEIGHTS
    ranks = ranks_of(config) if config else None
    first: dict[str, int] = {}
    for name, factor in factors.items():
        if factor.rank is None:
            continue
        if ranks is not None and factor.rank not in ranks:
            allowed = " or ".join(str(rank) for rank in sorted(ranks))
            what = f"tensor {seen(name)} has rank {factor.rank}, adapter_config.json says r {allowed}"
            yield finding("ADAPTER_RANK_DIFFERS", what, file=path, pointer=name)
        elif first.setdefault(factor.module, factor.rank) != factor.rank:
            what = f"tensor {seen(name)} has rank {factor.rank}, the other factor has {first[factor.module]}"
            yield finding("ADAPTER_RANK_DIFFERS", what, file=path, pointer=name)


def _check_effect(found: Mapping[str, Values], factors: Mapping[str, Factor]) -> Iterator[Finding]:
    """A module moves only where both of its factors have a weight; what stands beside the factors counts too."""
    others = [name for name in found if name not in factors]
    is_other = any(found[name].has_weight for name in others if is_beside(name) or ".lora_" not in name)
    if not factors or is_other:
        return
    moved: dict[str, set[str]] = {}
    for name, factor in factors.items():
        if found[name].has_weight:
            moved.setdefault(factor.module, set()).add(factor.side)
    if any(len(own) == 2 for own in moved.values()):
        return
    modules = {factor.module for factor in factors.values()}
    what = f"one factor of each of the {len(modules)} modules is zero: the adapter changes nothing"
    yield finding("ADAPTER_ZERO", what, file=layout.ADAPTER_WEIGHTS)


def _check_count(run: RunDirectory, tensors: Mapping[str, Any]) -> Iterator[Finding]:
    adapter = None if run.manifest is None else run.manifest.output_adapter
    count = sum(math.prod(entry["shape"]) for entry in tensors.values())
    own = sum(math.prod(entry["shape"]) for name, entry in tensors.items() if ".lora_" in name)
    trainable = None if run.manifest is None else run.manifest.trainable_parameters
    if adapter is not None and adapter.parameters != count:
        what = f"the weights hold {count} parameters, the manifest says {adapter.parameters}"
        yield finding("ADAPTER_COUNT_DIFFERS", what, file=layout.ADAPTER_WEIGHTS)
    elif trainable and not own <= trainable <= count:
        # Embeddings can be saved beside the factors and not have been trained.
        what = f"{trainable} parameters were trainable, the weights hold {own} in factors and {count - own} beside them"
        yield finding("COUNT_DIFFERS", what, file=layout.MANIFEST, pointer="/trainable_parameters")


def _check_manifest(run: RunDirectory, tensors: str | None) -> Iterator[Finding]:
    """Hold what the manifest says to the weights.

    Args:
        run: The run.
        tensors: Digest of the tensors that lie in the run; `None` when there are none that could be read.
    """
    manifest = run.manifest
    if manifest is None:
        return
    place: dict[str, Any] = {"file": layout.MANIFEST}
    if manifest.trainable_parameters == 0:
        yield finding("TRAINABLE_NONE", "0 parameters were trainable", pointer="/trainable_parameters", **place)
    output = manifest.output_adapter
    if output is None:
        lies_there = layout.ADAPTER_WEIGHTS in run.files
        if manifest.status == "complete" or lies_there:
            begin = "weights lie in the run and the manifest" if lies_there else "the run is complete and"
            what = f"{begin} names no output adapter"
            yield finding("ADAPTER_UNNAMED", what, pointer="/output_adapter", **place)
        return
    yield from _check_change(manifest.input_adapter, output, tensors)
    actual = _hash_of(run, layout.ADAPTER_WEIGHTS) if layout.ADAPTER_WEIGHTS in run.files else None
    if actual is not None and actual != output.sha256:
        what = f"the weights have SHA-256 {short(actual)}, the manifest says {short(output.sha256)}"
        yield finding("ADAPTER_DIFFERS", what, file=layout.ADAPTER_WEIGHTS)
    elif tensors is not None and output.tensors_sha256 not in (None, tensors):
        said = short(output.tensors_sha256 or "")
        what = f"the tensors of the weights have digest {short(tensors)}, the manifest says {said}"
        yield finding("ADAPTER_DIFFERS", what, pointer="/output_adapter/tensors_sha256", **place)


def _check_change(given: AdapterIdentity | None, output: AdapterIdentity, tensors: str | None) -> Iterator[Finding]:
    """The adapter that came out is another one than went in, by its bytes and by its tensors."""
    if given is None:
        return
    place: dict[str, Any] = {"file": layout.MANIFEST}
    came_out = tensors or output.tensors_sha256
    if given.sha256 == output.sha256:
        what = f"the adapter that came out, {short(output.sha256)}, is the one that went in"
        yield finding("ADAPTER_UNCHANGED", what, pointer="/output_adapter/sha256", **place)
    elif came_out is not None and given.tensors_sha256 == came_out:
        what = f"the tensors that came out, {short(came_out)}, are those that went in, in a file of other bytes"
        key = "sha256" if output.tensors_sha256 is None else "tensors_sha256"
        yield finding("ADAPTER_UNCHANGED", what, pointer=f"/output_adapter/{key}", **place)


def _hash_of(run: RunDirectory, path: str) -> str | None:
    try:
        return checksum_of(run.files, path).sha256
    except OSError:
        return None
