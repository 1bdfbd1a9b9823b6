"""What a run leaves behind: the adapter without its by-products, pictures, summary, seal, archive and delivery."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import orjson

from molforge_env.errors import MolForgeError
from molforge_eval import layout
from molforge_eval.archive import pack_run
from molforge_eval.canonical import file_bytes
from molforge_eval.checks.tensors import digest_weights
from molforge_eval.limits import DEFAULT_LIMITS
from molforge_eval.records.manifest import AdapterIdentity
from molforge_eval.report.model_card import write_card
from molforge_eval.report.plots import draw_plots
from molforge_eval.run_directory import load
from molforge_eval.run_summary import compute_summary
from molforge_eval.sealing import seal_run, write_whole
from molforge_eval.weights import read_adapter
from molforge_train.drive_copy import copy_run
from molforge_train.hub_upload import upload_run
from molforge_train.provenance import scrubbed

if TYPE_CHECKING:
    from molforge_train.policy import Policy


def export_adapter(policy: Policy, base_model: str, folder: Path) -> AdapterIdentity:
    """Write adapter and tokenizer, and nothing else that the libraries would put beside them.

    Args:
        policy: The trained policy.
        base_model: Name of the base model in the adapter's configuration.
        folder: Run directory.
    """
    # It gets its name when it is whole, so that a run that is killed has an adapter or none.
    target = folder / f".{layout.ADAPTER_FOLDER}.part"
    policy.model.peft_config["default"].base_model_name_or_path = base_model
    # The copy of the start adapter that training compares with is no part of the result.
    policy.model.save_pretrained(str(target), selected_adapters=["default"])
    policy.tokenizer.save_pretrained(str(target))
    for path in sorted(target.rglob("*"), reverse=True):
        if path.is_dir():
            path.rmdir()
        elif (
            not layout.is_record(f"{layout.ADAPTER_FOLDER}/{path.relative_to(target).as_posix()}")
            or path.name == "README.md"
        ):
            # The libraries' card is an unfilled form; ours is written when there is something to say.
            path.unlink()
        elif path.suffix == ".json":
            _tidy(path)
    shutil.rmtree(folder / layout.ADAPTER_FOLDER, ignore_errors=True)
    target.replace(folder / layout.ADAPTER_FOLDER)
    return identify_adapter(folder / layout.ADAPTER_FOLDER, layout.ADAPTER_FOLDER)


def identify_adapter(folder: Path, shown: str) -> AdapterIdentity:
    """Name an adapter by the hash of its weights, and by the digest of its tensors.

    Args:
        folder: Where it stands.
        shown: Path in the record.
    """
    found = read_adapter(folder)
    tensors = digest_weights(found.weights, DEFAULT_LIMITS)
    return AdapterIdentity(
        path=scrubbed(shown),
        sha256=found.sha256,
        parameters=found.parameters,
        tensors_sha256=tensors.sha256,
        tensors_sha256_reason=tensors.reason,
    )


def prepare_run(folder: Path) -> None:
    """Draw the pictures, write the summary, and the card of the adapter where there is one."""
    draw_plots(folder)
    run = load(folder)
    write_whole(folder / layout.SUMMARY, file_bytes(compute_summary(run)))
    card = write_card(run)
    if card is not None and (folder / layout.ADAPTER_FOLDER).is_dir():
        write_whole(folder / layout.ADAPTER_CARD, card.encode())


def finish_run(folder: Path) -> Path:
    """Seal the run and pack it.

    Returns:
        The archive beside the run directory.
    """
    seal_run(folder)
    return pack(folder)


def pack(folder: Path) -> Path:
    """Make the archive of a sealed run beside its directory, in place of an older one."""
    archive = folder.with_name(f"{folder.name}.zip")
    pack_run(folder, archive)
    return archive


class Delivery(NamedTuple):
    """Where a sealed run has been brought."""

    copy: Path | None
    commit: str | None
    """Address on the hub."""
    faults: tuple[MolForgeError, ...]
    """What was asked for and is not there; the run is whole all the same."""


def deliver(folder: Path, archive: Path, *, drive: str | None, repository: str | None) -> Delivery:
    """Bring a sealed run to where its settings want it; one place that fails keeps no other from getting it.

    Args:
        folder: The run directory.
        archive: Its archive.
        drive: Folder that gets a copy.
        repository: Repository of the hub that gets a commit.
    """
    copy = commit = None
    faults: list[MolForgeError] = []
    try:
        copy = None if drive is None else copy_run(folder, archive, Path(drive).expanduser())
    except MolForgeError as error:
        faults.append(error)
    try:
        commit = None if repository is None else upload_run(folder, archive, repository)
    except MolForgeError as error:
        faults.append(error)
    return Delivery(copy, commit, tuple(faults))


def _tidy(path: Path) -> None:
    # Sorted where the library writes a set, and free of this machine's paths: the same weights give the same bytes.
    settings = orjson.loads(scrubbed(path.read_text("utf-8")))
    if path.name == "adapter_config.json" and isinstance(settings.get("target_modules"), list):
        settings["target_modules"] = sorted(settings["target_modules"])
    if path.name != "tokenizer.json":
        write_whole(path, file_bytes(settings))
