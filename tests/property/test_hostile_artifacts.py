"""Mutated artifacts give findings, never an exception, and never stop a check."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from molforge_eval import layout
from molforge_eval.replay import verify
from molforge_eval.sealing import seal_run
from molforge_eval.voices import github, junit, machine, markdown, sarif, text
from molforge_eval.voices.judged_run import JudgedRun

BYTES_OF = (
    *(layout.MANIFEST, layout.PLAN, layout.BEFORE, layout.AFTER, layout.SUMMARY, layout.CHECKSUMS, layout.PLOT_DATA),
    *(layout.ROLLOUTS, layout.TRAINER_LOG, layout.METRICS_TABLE),
    *(layout.ADAPTER_CONFIG, layout.ADAPTER_WEIGHTS, "plots/loss_curve.png"),
)
JSON_OF = (layout.MANIFEST, layout.PLAN, layout.AFTER, layout.SUMMARY, layout.CHECKSUMS, layout.PLOT_DATA)
LINES_OF = (layout.ROLLOUTS, layout.TRAINER_LOG)
# What a forger or an accident puts under a key: other kinds, edges of ranges, other names that exist.
ODD = st.sampled_from(
    [None, True, 0, -1, 1, 2**63 - 1, 0.5, 1e308, "", "x", "\x00", "../x", "level_0_easy", "randomized", "submit",
     "env_error", "no_call", "hf", "0" * 64, "0000", "2026-01-01T12:00:30Z", [], {}, [None], {"a": [1]}]
)  # fmt: skip
THOROUGH = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def scratch(built_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(built_run, tmp_path_factory.mktemp("hostile") / "run"))


def judge(scratch: Path, sound: Path, path: str, data: bytes, *, sealed: bool) -> set[str]:
    """Verify a run with one file replaced, put the file back, and return the codes."""
    try:
        (scratch / path).write_bytes(data)
        if sealed and path not in (layout.CHECKSUMS, layout.MANIFEST):
            _seal(scratch)
        result = verify(scratch, workers=1)
    finally:
        shutil.copyfile(sound / path, scratch / path)
        shutil.copyfile(sound / layout.CHECKSUMS, scratch / layout.CHECKSUMS)
    text.render(result, show_all=True)
    for voice in (machine.render, markdown.render, junit.render, sarif.render, github.render):
        voice([JudgedRun("run", is_folder=True, result=result)])
    return {item.code for item in result.findings}


def _seal(scratch: Path) -> None:
    # A forger's own tool refuses a log that it cannot read; then the run stays unsealed.
    try:
        seal_run(scratch)
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return


def steps_into(value: Any, draw: st.DrawFn) -> tuple[Any, Any]:
    """Choose a place inside a value: the container and the key."""
    container, key = value, draw(st.sampled_from(sorted(value)))
    while draw(st.booleans()) or draw(st.booleans()):
        inner = container[key]
        if isinstance(inner, dict) and inner:
            container, key = inner, draw(st.sampled_from(sorted(inner)))
        elif isinstance(inner, list) and inner:
            container, key = inner, draw(st.integers(0, len(inner) - 1))
        else:
            break
    return container, key


@THOROUGH
@given(data=st.data())
def test_bytes_that_were_changed_or_cut_give_findings(built_run: Path, scratch: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(BYTES_OF))
    sound = (built_run / path).read_bytes()
    start = data.draw(st.integers(0, len(sound)))
    length = data.draw(st.sampled_from([0, 1, 3, 50, len(sound)]))
    put = data.draw(st.binary(max_size=12) | st.sampled_from([b'"', b"{", b"]", b"\n", b"NaN", b",", b"\xff" * 9]))
    spoiled = sound[:start] + put + sound[start + length :]
    codes = judge(scratch, built_run, path, spoiled, sealed=False)

    assert "CHECK_STOPPED" not in codes
    assert codes or spoiled == sound or path == layout.CHECKSUMS


@THOROUGH
@given(data=st.data(), sealed=st.booleans())
def test_a_value_that_was_replaced_in_a_record_gives_findings_or_is_as_good(
    built_run: Path, scratch: Path, data: st.DataObject, sealed: bool
) -> None:
    path = data.draw(st.sampled_from(JSON_OF))
    value = orjson.loads((built_run / path).read_bytes())
    container, key = steps_into(value, data.draw)
    if isinstance(container, dict) and data.draw(st.booleans()):
        del container[key]
    else:
        container[key] = data.draw(ODD)
    codes = judge(scratch, built_run, path, orjson.dumps(value), sealed=sealed)

    assert "CHECK_STOPPED" not in codes


@THOROUGH
@given(data=st.data(), sealed=st.booleans())
def test_lines_that_were_replaced_moved_or_dropped_give_findings(
    built_run: Path, scratch: Path, data: st.DataObject, sealed: bool
) -> None:
    path = data.draw(st.sampled_from(LINES_OF))
    lines = (built_run / path).read_bytes().splitlines()
    here, there = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    match data.draw(st.sampled_from(["drop", "copy", "swap", "edit"])):
        case "drop":
            del lines[here]
        case "copy":
            lines.insert(there, lines[here])
        case "swap":
            lines[here], lines[there] = lines[there], lines[here]
        case "edit":
            value = orjson.loads(lines[here])
            value[data.draw(st.sampled_from(sorted(value)))] = data.draw(ODD)
            lines[here] = orjson.dumps(value)
    codes = judge(scratch, built_run, path, b"\n".join(lines) + b"\n", sealed=sealed)

    assert "CHECK_STOPPED" not in codes
