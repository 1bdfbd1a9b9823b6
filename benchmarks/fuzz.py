"""Whether any reader stops on anything: sound inputs, spoiled at random, read again and again.

`python -m benchmarks.fuzz [INPUTS] [SEED]` spoils bytes and values of sound inputs and gives each to its reader. What a
reader may answer is a value, findings, or an error of ours; anything else is a traceback, which is printed with the
input's number, by which it is made again. Prints a table and, last, `inputs=N tracebacks=N`; exit code 1 when there is
a traceback.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import orjson
from evidence_builder import build_run
from packet_builder import attachments_of, write_packet

from benchmarks.spoiling import spoil
from molforge_env.errors import MolForgeError
from molforge_eval import layout
from molforge_eval.archive import pack_run, unpack_archive
from molforge_eval.checks import adapters, packet, plots, privacy, tables
from molforge_eval.cli.check import _read_limits
from molforge_eval.json_lines import read_lines
from molforge_eval.ledger import Ledger
from molforge_eval.limits import DEFAULT_LIMITS
from molforge_eval.old_run import read_old_run
from molforge_eval.packet_pdf import is_pdf, order_for
from molforge_eval.pdf_reader import read_packet
from molforge_eval.png_text import PngFaultError, read_png_text
from molforge_eval.record_files import read_record
from molforge_eval.records import Checksums, Evaluation, EvaluationPlan, PlotTable, RunManifest, RunSummary
from molforge_eval.run_directory import RunDirectory, load
from molforge_eval.run_files import list_run
from molforge_eval.strict_json import read_file_value, read_value
from molforge_eval.validate import validate
from molforge_eval.waivers import read_waivers

INPUTS = 100_000
_WAIVERS = (
    b'[[waiver]]\ncode = "FILE_STRAY"\nwhere = "notes.txt"\nreason = "kept by the team"\nuntil = 2027-01-31\n\n'
    b'[[waiver]]\ncode = "RUN_INCOMPLETE"\nwhere = "*"\nreason = "stopped by hand"\nuntil = 2027-01-31\n'
)
_MOST_SHOWN = 20
_WHOLE = "whole run"
_SHORT = "short:"
_KEPT_LINES = 8
_KEPT_ELEMENTS = 2


class Stage(NamedTuple):
    """What the inputs are made from: a sound run in a folder, and a folder to write into."""

    run: RunDirectory
    seeds: dict[str, bytes]
    scratch: Path


class Reader(NamedTuple):
    """One reader, how often it is asked out of a thousand, and which seeds it reads."""

    name: str
    share: int
    seeds: tuple[str, ...]
    read: Callable[[Stage, str, bytes], object]


@dataclass
class Tally:
    """What became of the inputs of one reader."""

    inputs: int = 0
    answers: int = 0
    errors: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    tracebacks: list[str] = field(default_factory=list)


def _text(_stage: Stage, _name: str, data: bytes) -> object:
    return read_value(data.split(b"\n", 1)[0], DEFAULT_LIMITS), read_file_value(data, DEFAULT_LIMITS)


def _lines(_stage: Stage, _name: str, data: bytes) -> object:
    limits = DEFAULT_LIMITS.model_copy(update={"line_bytes": 5_000})
    return [list(read_lines(io.BytesIO(data), bounds)) for bounds in (DEFAULT_LIMITS, limits)]


def _picture(_stage: Stage, _name: str, data: bytes) -> object:
    try:
        return read_png_text(data)
    except PngFaultError as error:
        return error


_RECORDS = {
    layout.MANIFEST: ("run_manifest", RunManifest),
    layout.PLAN: ("eval_plan", EvaluationPlan),
    layout.AFTER: ("evaluation", Evaluation),
    layout.SUMMARY: ("run_summary", RunSummary),
    layout.CHECKSUMS: ("checksums", Checksums),
    layout.PLOT_DATA: ("plot_data", PlotTable),
}


def _with_file(stage: Stage, path: str, data: bytes) -> RunDirectory:
    """Put a file in place of one of the run, in a folder that holds nothing else."""
    root = stage.scratch / "one"
    shutil.rmtree(root, ignore_errors=True)
    (root / path).parent.mkdir(parents=True)
    (root / path).write_bytes(data)
    return replace(stage.run, root=root, files=list_run(root), is_packet=False)


def _record(stage: Stage, path: str, data: bytes) -> object:
    shape, model = _RECORDS[path]
    files = _with_file(stage, path, data).files
    return read_record(files, path, shape, model, Ledger(), DEFAULT_LIMITS)


def _checked(stage: Stage, path: str, data: bytes) -> object:
    run = _with_file(stage, path, data)
    asked = (adapters.check, tables.check, plots.check, privacy.check, packet.check)
    return [list(check(run)) for check in asked]


def _archive(stage: Stage, _name: str, data: bytes) -> object:
    path = stage.scratch / "a.zip"
    path.write_bytes(data)
    unpacked = unpack_archive(path)
    shutil.rmtree(unpacked.holder)
    return unpacked


def _document(stage: Stage, _name: str, data: bytes) -> object:
    path, folder = stage.scratch / "a.pdf", stage.scratch / "pieces"
    path.write_bytes(data)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with open(os.devnull, "w") as void, contextlib.redirect_stderr(void):  # noqa: PTH123 - a void
        return is_pdf(path), read_packet(folder, order_for(path, DEFAULT_LIMITS))


def _settings(stage: Stage, _name: str, data: bytes) -> object:
    path = stage.scratch / "waivers.toml"
    path.write_bytes(data)
    with contextlib.suppress(MolForgeError):
        _read_limits((data[:40].decode("latin-1"), "line_bytes=" + data[-20:].decode("latin-1")))
    return read_waivers(path)


def _old(stage: Stage, path: str, data: bytes) -> object:
    return read_old_run(_with_file(stage, path, data).files, Ledger(), DEFAULT_LIMITS)


def _whole(stage: Stage, path: str, data: bytes) -> object:
    root = stage.run.root
    sound = (root / path).read_bytes()
    try:
        (root / path).write_bytes(data)
        result = validate(root)
    finally:
        (root / path).write_bytes(sound)
    stopped = [item.what for item in result.findings if item.code == "CHECK_STOPPED"]
    if stopped:
        raise AssertionError(stopped[0])
    return result


_JSON = tuple(_RECORDS)
READERS = (
    Reader("JSON text", 180, (*_JSON, layout.EVIDENCE, layout.ADAPTER_CONFIG), _text),
    Reader("JSON lines", 150, layout.LOGS, _lines),
    Reader("record", 130, _JSON, _record),
    Reader("PNG", 150, layout.PLOTS, _picture),
    Reader("CSV", 80, (layout.METRICS_TABLE,), _checked),
    Reader("safetensors", 70, (layout.ADAPTER_WEIGHTS,), _checked),
    Reader("adapter_config", 40, (layout.ADAPTER_CONFIG,), _checked),
    Reader("zip", 60, ("zip",), _archive),
    Reader("packet PDF", 60, ("pdf",), _document),
    Reader("waivers, limits", 49, ("waivers",), _settings),
    Reader("format version 0", 28, (*layout.LOGS, layout.MANIFEST, layout.AFTER, layout.SUMMARY), _old),
    Reader(_WHOLE, 3, (*_JSON, *layout.LOGS, layout.METRICS_TABLE, layout.ADAPTER_WEIGHTS, layout.EVIDENCE), _whole),
)


@contextlib.contextmanager
def set_stage() -> Iterator[Stage]:
    """Make the sound inputs: a small run, its archive, and its packet."""
    with tempfile.TemporaryDirectory(prefix="molforge-fuzz-") as name:
        folder = Path(name)
        root = build_run(folder / "run")
        held = attachments_of(root)
        pack_run(root, folder / "run.zip")
        seeds = {path: (root / path).read_bytes() for path in list_run(root).sizes}
        seeds |= {_SHORT + path: _shortened(path, data) for path, data in seeds.items()}
        seeds["zip"] = _small_archive(folder / "small.zip")
        seeds["pdf"] = write_packet(folder / "run.pdf", held).read_bytes()
        seeds["waivers"] = _WAIVERS
        scratch = folder / "scratch"
        scratch.mkdir()
        yield Stage(load(root), seeds, scratch)


def _shortened(path: str, data: bytes) -> bytes:
    """Cut an input to the few lines or elements that show its shape: most of a fuzzer's time is reading."""
    if path.endswith((".jsonl", ".csv")):
        return b"".join(data.splitlines(keepends=True)[:_KEPT_LINES])
    if not path.endswith(".json"):
        return data
    value = orjson.loads(data)
    for key, held in value.items():
        value[key] = held[:_KEPT_ELEMENTS] if isinstance(held, list) else held
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _small_archive(path: Path) -> bytes:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, name in enumerate(("run_manifest.json", "logs/a.jsonl", "plots/a.png", "x/")):
            archive.writestr(f"run/{name}", b"%d" % number * 50)
    return path.read_bytes()


def fuzz(stage: Stage, inputs: int, seed: int) -> dict[str, Tally]:
    """Spoil and read so many inputs; each is made from the seed and its number alone."""
    tallies = {reader.name: Tally() for reader in READERS}
    others = list(stage.seeds.values())
    shares = [reader.share for reader in READERS]
    for number in range(inputs):
        rng = Random(f"{seed} {number}")
        (reader,) = rng.choices(READERS, shares)
        name = rng.choice(reader.seeds)
        sound = stage.seeds.get("" if reader.name == _WHOLE else _SHORT + name) or stage.seeds[name]
        data = spoil(sound, rng, others)
        tally = tallies[reader.name]
        began = time.perf_counter()
        try:
            reader.read(stage, name, data)
            tally.answers += 1
        except MolForgeError:
            tally.errors += 1
        except Exception:  # noqa: BLE001 - what this program looks for
            tally.tracebacks.append(f"input {number} of seed {seed}, {reader.name}, {name}\n{traceback.format_exc()}")
        took = time.perf_counter() - began
        tally.inputs += 1
        tally.seconds += took
        tally.slowest = max(tally.slowest, took)
    return tallies


def main() -> int:
    """Fuzz, print the table, and return the exit code."""
    inputs = int(sys.argv[1]) if len(sys.argv) > 1 else INPUTS
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with set_stage() as stage:
        tallies = fuzz(stage, inputs, seed)
    broken = [text for tally in tallies.values() for text in tally.tracebacks]
    for text in broken[:_MOST_SHOWN]:
        print(text)
    heads = ("inputs", "answers", "errors", "tracebacks", "ms each", "slowest")
    print(f"{'reader':<18}" + "".join(f"{head:>11}" for head in heads))
    for name, tally in tallies.items():
        each, slowest = 1000 * tally.seconds / max(tally.inputs, 1), 1000 * tally.slowest
        print(
            f"{name:<18}{tally.inputs:>11}{tally.answers:>11}{tally.errors:>11}{len(tally.tracebacks):>11}"
            f"{each:>11.2f}{slowest:>11.0f}"
        )
    print(f"inputs={sum(tally.inputs for tally in tallies.values())} tracebacks={len(broken)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
