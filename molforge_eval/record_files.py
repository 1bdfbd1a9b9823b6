"""Files of one JSON text, read into a value or a record; what is wrong with one goes to the ledger."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import ValidationError

from molforge_env.frozen import FrozenModel
from molforge_eval.catalogue import finding, seen
from molforge_eval.ledger import Ledger
from molforge_eval.limits import Limits
from molforge_eval.log_tables import fits
from molforge_eval.run_files import RunFiles
from molforge_eval.strict_json import UNUSABLE, Parsed, count_values, pointer_of, read_file_value

Record = TypeVar("Record", bound=FrozenModel)


def read_json(files: RunFiles, path: str, ledger: Ledger, limits: Limits) -> Parsed:
    """Read a file of one JSON text; what is wrong with it goes to the ledger."""
    try:
        data = files.read(path, at_most=limits.file_bytes)
    except OSError as error:
        ledger.add(finding("FILE_UNREADABLE", f"the file cannot be read: {error.strerror or error}", file=path))
        return UNUSABLE
    if data is None:
        what = f"the file has {files.sizes[path]} bytes, the limit is {limits.file_bytes}"
        ledger.add(finding("FILE_TOO_LARGE", what, file=path))
        return UNUSABLE
    values = count_values(data, more_than=limits.json_values)
    if values > limits.json_values:
        what = f"the file holds {values} values, the limit is {limits.json_values}"
        ledger.add(finding("FILE_TOO_LARGE", what, file=path))
        return UNUSABLE
    parsed = read_file_value(data, limits)
    for fault in parsed.faults:
        ledger.add(finding(fault.code, fault.what, file=path, pointer=fault.pointer))
    return parsed


def read_record(
    files: RunFiles, path: str, shape: str, model: type[Record], ledger: Ledger, limits: Limits
) -> Record | None:
    """Read a record of its schema; `None` when the file is absent or cannot be used, which the ledger then tells."""
    if path not in files:
        return None
    parsed = read_json(files, path, ledger, limits)
    if not parsed.usable or not fits(parsed.value, shape, path, None, ledger):
        return None
    return record_of(parsed.value, path, model, ledger)


def record_of(value: Any, path: str, model: type[Record], ledger: Ledger) -> Record | None:
    """Make a record of a value that fits its schema; what only the model knows to be wrong goes to the ledger."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            what = f"value {seen(detail['input'])}: {detail['msg']}"
            ledger.add(finding("SCHEMA_UNMET", what, file=path, pointer=pointer_of(detail["loc"])))
        return None
