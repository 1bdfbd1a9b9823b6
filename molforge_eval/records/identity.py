"""What ties the artifacts of a run together: hashes, counts, chains, and the data behind the plots."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from molforge_env.frozen import FrozenModel
from molforge_eval.records.fields import Count, FormatVersion, RelativePath, RunId, Sha256


class ArtifactChecksum(FrozenModel):
    """One record file."""

    path: RelativePath
    sha256: Sha256
    size: Count
    """Bytes."""


class LogSeal(FrozenModel):
    """The end of a log, so that its last line cannot be dropped unseen."""

    path: RelativePath
    lines: Count
    chain: Sha256 | None
    """Chain value of the last line (for a log without chains the digest of the last line); `None` for an empty log."""
    episodes: Count | None
    """Distinct episodes of a rollout log."""


class EvaluationSeal(FrozenModel):
    """How many episodes an evaluation holds."""

    path: RelativePath
    episodes: Count


class Checksums(FrozenModel):
    """The seal of a run directory. Packet files are no records and stand outside."""

    format_version: FormatVersion
    run_id: RunId
    files: tuple[ArtifactChecksum, ...]
    """Sorted by path."""
    logs: tuple[LogSeal, ...]
    evaluations: tuple[EvaluationSeal, ...]
    root_sha256: Sha256
    """Digest of the list of [path, sha256, size] of `files`."""


class PlotRecord(FrozenModel):
    """One picture: where its data come from, and the data themselves."""

    path: RelativePath
    title: str
    caption: str
    x_label: str
    y_label: str
    sources: tuple[RelativePath, ...]
    """Files that hold the plotted values."""
    source_columns: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    """The plotted points; a gap is `null`."""
    data_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Digest of [columns, rows]; the PNG carries the same value in a text chunk."""


class PlotTable(FrozenModel):
    """`plots/plot_data.json`: the data behind every picture of the run."""

    format_version: FormatVersion
    run_id: RunId
    plots: tuple[PlotRecord, ...]


class PlotText(FrozenModel):
    """The text chunks of a plot, read into an object."""

    run_id: RunId
    data_sha256: Sha256
    software: str
    title: str


class TensorHeader(FrozenModel):
    """Name, type and shape of one tensor."""

    dtype: Literal[
        "F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2",
        "I64", "U64", "I32", "U32", "I16", "U16", "I8", "U8", "BOOL",
    ]  # fmt: skip
    shape: Annotated[tuple[Count, ...], Field(max_length=8)]


class AdapterHeader(FrozenModel):
    """The safetensors header of an adapter, read into an object."""

    tensors: dict[str, TensorHeader]
