"""A picture of a run, read for the checks: never decoded, and what cannot be read is a finding."""

from __future__ import annotations

from collections.abc import Generator

from molforge_eval.catalogue import finding
from molforge_eval.findings import Finding
from molforge_eval.png_text import PngFaultError, PngText, read_png_text
from molforge_eval.run_directory import RunDirectory


def read_picture(run: RunDirectory, path: str) -> Generator[Finding, None, PngText | None]:
    """Read size and texts of a picture, within the limits; `None` when it is no picture that can be read."""
    try:
        data = run.files.read(path, at_most=run.limits.file_bytes)
        if data is None:
            what = f"the file has {run.files.sizes[path]} bytes, the limit is {run.limits.file_bytes}"
            yield finding("FILE_TOO_LARGE", what, file=path)
            return None
        picture = read_png_text(data)
    except OSError as error:
        yield finding("FILE_UNREADABLE", f"the file cannot be read: {error.strerror or error}", file=path)
        return None
    except PngFaultError as error:
        yield finding("PLOT_UNREADABLE", f"no PNG picture: {error}", file=path)
        return None
    if not 0 < picture.width * picture.height <= run.limits.picture_pixels:
        what = f"the picture is {picture.width} by {picture.height}, the limit is {run.limits.picture_pixels} pixels"
        yield finding("PLOT_UNREADABLE", what, file=path)
    return picture
