"""How much a stranger's file may ask for; every limit is a setting and is stated in the documents."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from molforge_env.frozen import FrozenModel

Positive = Annotated[int, Field(ge=1)]


class Limits(FrozenModel):
    """Bounds on reading; a file beyond one is named in a finding and not read further."""

    line_bytes: Positive = 4 * 2**20
    """Longest line of a log."""
    file_bytes: Positive = 128 * 2**20
    """Largest file that is read as a whole: JSON, CSV, a picture."""
    json_values: Positive = 4_000_000
    """Most values in a file of one JSON text: many small ones take far more memory than their bytes."""
    log_faults: Positive = 100_000
    """Most faults of the lines of one log; the rest of it is not read."""
    trainer_keys: Positive = 1_000
    """Most different keys in the rows of a trainer log: each is a column of the table."""
    trainer_cells: Positive = 8_000_000
    """Rows of a trainer log times its different keys."""
    json_depth: Positive = 64
    """Deepest nesting of lists and objects."""
    number_digits: Positive = 400
    """Longest spelling of one number."""
    tensor_header_bytes: Positive = 16 * 2**20
    """Longest safetensors header."""
    picture_pixels: Positive = 50_000_000
    """Width times height of a plot."""
    directory_entries: Positive = 20_000
    """Files and folders of a run."""
    directory_bytes: Positive = 32 * 2**30
    """All files of a run together; those beyond are not opened."""
    archive_entries: Positive = 20_000
    archive_bytes: Positive = 4 * 2**30
    """All members together, counted while they are read."""
    archive_ratio: Positive = 200
    """Unpacked size over packed size of one member; members under 1 MiB are not judged by it."""
    pdf_bytes: Positive = 128 * 2**20
    """Largest packet PDF."""
    pdf_attachments: Positive = 64
    """Most files attached to a packet PDF."""
    pdf_objects: Positive = 500_000
    """Most objects of a packet PDF."""
    pdf_seconds: Positive = 60
    """Processor and clock time of the child process that reads a packet PDF."""
    pdf_memory_bytes: Positive = 2**30
    """Memory of that child process."""
    findings_a_code: Positive = 2_000
    """Findings kept of one code; the others are counted."""


DEFAULT_LIMITS = Limits()
