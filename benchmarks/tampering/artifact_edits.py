"""Tampering with pictures, adapters, checksums, packets and archives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from evidence_builder import edit_json, read_json, with_text, write
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from benchmarks.tampering.operator import Operator, UnfitRunError, all_of, episode_edit, put, record_edit
from molforge_eval import layout
from molforge_eval.archive import pack_run
from molforge_eval.canonical import digest, file_bytes
from molforge_eval.report.build import PacketOptions, build_packet

_REWARD = "plots/reward_curve.png"
_LOSS = "plots/loss_curve.png"


def _picture(root: Path, path: str) -> bytes:
    if not (root / path).exists():
        raise UnfitRunError
    return (root / path).read_bytes()


def _exchange_pictures(root: Path) -> None:
    first, second = _picture(root, _REWARD), _picture(root, _LOSS)
    write(root, _REWARD, second)
    write(root, _LOSS, first)


def _rename_run(root: Path) -> None:
    write(root, _REWARD, with_text(_picture(root, _REWARD), "molforge:run_id", "run-ffffffffffff"))


def _plot(change: Callable[[Any], Any]) -> Callable[[Path], None]:
    """Change the data of the reward curve, and sign picture and data with the new digest."""

    def edit(root: Path) -> None:
        if not (root / layout.PLOT_DATA).exists():
            raise UnfitRunError
        table = read_json(root, layout.PLOT_DATA)
        record = next(entry for entry in table["plots"] if entry["path"] == _REWARD)
        change(record)
        record["data_sha256"] = digest([record["columns"], record["rows"]])
        write(root, layout.PLOT_DATA, file_bytes(table))
        write(root, _REWARD, with_text(_picture(root, _REWARD), "molforge:data_sha256", record["data_sha256"]))

    return edit


def _raise_points(record: Any) -> None:
    record["rows"] = [[*row[:2], row[2] + 0.4, row[3] + 0.4] for row in record["rows"]]


def _drop_points(record: Any) -> None:
    record["rows"] = record["rows"][1:]


def _tensors(change: Callable[[str, NDArray[Any]], NDArray[Any]]) -> Callable[[Path], None]:
    def edit(root: Path) -> None:
        path = root / layout.ADAPTER_WEIGHTS
        values = {name: change(name, value) for name, value in load_file(path).items()}
        save_file(values, path, metadata={"format": "pt"})

    return edit


def _name_input(root: Path) -> None:
    """Let the adapter that came out be the one that went in."""
    manifest = read_json(root, layout.MANIFEST)
    edit_json(
        root, layout.MANIFEST, lambda value: value["input_adapter"].update(sha256=manifest["output_adapter"]["sha256"])
    )

    def rename(value: Any) -> None:
        value["policy"]["adapter_sha256"] = manifest["output_adapter"]["sha256"]
        for episode in value["episodes"]:
            episode["policy_sha256"] = digest(value["policy"])

    edit_json(root, layout.BEFORE, rename)


def pack(root: Path) -> None:
    """Build the evidence of a run."""
    build_packet(root, options=PacketOptions(html=False, pdf=False, replay=False, pack=False))


def _packet(name: str, gain: str, change: Callable[[Any], Any], *kept: Any) -> Operator:
    return Operator(
        f"packet: {name}", gain, all_of(pack, record_edit(change, layout.EVIDENCE)), ("packet", "means", *kept)
    )


def _number(number_id: str, value: float) -> Callable[[Any], None]:
    def change(evidence: Any) -> None:
        number = next(entry for entry in evidence["numbers"] if entry["id"] == number_id)
        number.update(value=value, text=f"{value:.3f}")

    return change


def _outcome(evidence: Any) -> None:
    other = "regressed" if evidence["verdict"]["outcome"] == "improved" else "improved"
    evidence["verdict"]["outcome"] = other


def _zipped(root: Path) -> Path:
    archive = root.parent / "run.zip"
    pack_run(root, archive)
    return archive


def _seal(name: str, change: Callable[[Any], Any]) -> Operator:
    return Operator(f"seal: {name}", "a change is hidden", record_edit(change, layout.CHECKSUMS), ("seal",))


OPERATORS: tuple[Operator, ...] = (
    Operator("plot: two pictures exchanged", "the loss passes for the reward", _exchange_pictures, ("pictures",)),
    Operator("plot: picture of another run", "another run's curve", _rename_run, ("pictures",)),
    Operator("plot: points raised", "the curve looks better", _plot(_raise_points), ("pictures",)),
    Operator("plot: bad points left out", "the curve looks better", _plot(_drop_points), ("pictures",)),
    Operator(
        "plot: other source column",
        "the loss passes for the reward",
        _plot(put("source_columns", value=["step", "loss"])),
        ("pictures",),
    ),
    Operator(
        "plot: other source file",
        "the points have no source",
        _plot(put("sources", value=[layout.ROLLOUTS])),
        ("pictures",),
    ),
    Operator(
        "plot: other axis", "the reward passes for the score", _plot(put("y_label", value="final_score")), ("pictures",)
    ),
    Operator(
        "plot: other caption",
        "more points are claimed",
        _plot(put("caption", value="4,000 steps, no gaps.")),
        ("pictures",),
    ),
    Operator(
        "plot: other column names",
        "the average passes for the value",
        _plot(put("columns", value=["segment", "step", "average", "value"])),
        ("pictures",),
    ),
    Operator(
        "adapter: weights zeroed", "nothing was learned", _tensors(lambda name, value: value * ("lora_A" in name))
    ),
    Operator(
        "adapter: weights not finite",
        "a broken adapter is delivered",
        _tensors(lambda _, value: np.full_like(value, np.nan)),
    ),
    Operator(
        "adapter: half the weights",
        "a smaller adapter is delivered",
        _tensors(lambda _, value: value[:, : value.shape[1] // 2].copy()),
    ),
    Operator("adapter: rank", "another adapter is claimed", record_edit(put("r", value=64), layout.ADAPTER_CONFIG)),
    Operator(
        "adapter: base model",
        "another base is claimed",
        record_edit(put("base_model_name_or_path", value="vast-70b"), layout.ADAPTER_CONFIG),
    ),
    Operator(
        "adapter: target modules",
        "another adapter is claimed",
        record_edit(put("target_modules", value=["gate"]), layout.ADAPTER_CONFIG),
    ),
    Operator("adapter: the one that went in", "nothing was learned", _name_input),
    _packet(
        "root hash", "the packet passes for this run's", lambda e: e["identity"].update(root_sha256="1" * 64), "seal"
    ),
    _packet("verdict word", "another verdict", _outcome),
    _packet("headline", "a higher headline", _number("score.mean.after", 0.99)),
    _packet("difference", "a larger difference", _number("score.mean.difference", 0.9)),
    _packet("p-value", "a clearer verdict", _number("score.mean.p", 0.0001)),
    _packet("run name", "another run's packet", lambda e: e["identity"].update(run_name="another")),
    _packet("model", "a larger model is claimed", lambda e: e["identity"].update(model="vast-70b")),
    _seal("hash of a file", put("files", 0, "sha256", value="1" * 64)),
    _seal("size of a file", put("files", 0, "size", value=1)),
    _seal("a file left out", lambda value: value["files"].pop()),
    _seal("lines of a log", put("logs", 0, "lines", value=1)),
    _seal("end of a log", put("logs", 0, "chain", value="1" * 64)),
    _seal("episodes of a log", put("logs", 0, "episodes", value=1)),
    _seal("episodes of an evaluation", put("evaluations", 0, "episodes", value=1)),
    _seal("root hash", put("root_sha256", value="1" * 64)),
    Operator(
        "archive: evaluation inside",
        "a zip looks untouched",
        episode_edit(lambda e: e["scores"] is not None, lambda e: e["scores"].update(final_score=0.99)),
        finish=_zipped,
    ),
)
