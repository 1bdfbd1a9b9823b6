"""The committed schemas are those of the models, closed, and judged alike by both validators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from evidence_builder import read_json, read_lines

from molforge_eval import layout, schema_files
from molforge_eval.shape import shape_of
from molforge_eval.shipped import schema_folder

NAMES = sorted(schema_files.models())
OPEN = {
    "adapter_config", "evaluation_v0", "rollout_line_v0", "run_manifest_v0", "run_summary_v0", "trainer_row",
    "trainer_row_v0", "trainer_state",
}  # fmt: skip
"""Shapes of what strangers write: keys of their own may stand beside the known ones."""
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 0.5, 1.0, -0.1, 2**62, "", "x", "0123", "yesterday", "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "run-0123456789ab", "run-0123456789ab\n", "a" * 500, [], [1], {},
    {"a": 1},
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_committed_schema_is_what_its_model_gives(name: str) -> None:
    committed = (schema_folder() / schema_files.file_name(name)).read_bytes()

    assert committed == schema_files.generate(name), "run `make schemas`"


def test_there_is_no_schema_without_a_model() -> None:
    assert sorted(path.name for path in schema_folder().iterdir()) == [schema_files.file_name(name) for name in NAMES]


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_in_its_dialect_and_named_by_a_relative_id(name: str) -> None:
    schema = schema_files.load(name)

    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"] == schema_files.file_name(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_refers_to_nothing_outside_itself(name: str) -> None:
    references = [node["$ref"] for node in _objects(schema_files.load(name)) if "$ref" in node]

    assert [reference for reference in references if not reference.startswith("#/")] == []


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OPEN])
def test_every_object_of_a_schema_is_closed_or_typed(name: str) -> None:
    open_objects = [
        node
        for node in _objects(schema_files.load(name))
        if node.get("type") == "object" and "properties" in node and node.get("additionalProperties") is not False
    ]

    assert open_objects == []


def test_writing_the_schemas_removes_one_that_no_model_stands_behind(tmp_path: Path) -> None:
    (tmp_path / "old.schema.json").write_text("{}")
    written = schema_files.write_all(tmp_path)

    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in written)


def test_both_validators_judge_a_corpus_of_mutants_alike(built_run: Path) -> None:
    differing = []
    for name, value in _sound_values(built_run):
        shape = shape_of(name)
        assert shape.fits(value), name
        assert shape.reference_fits(value), name
        for mutant in _mutants(value):
            if shape.fits(mutant) != shape.reference_fits(mutant):
                differing.append((name, mutant))
            elif not shape.fits(mutant):
                assert list(shape.explain(mutant)), (name, mutant)

    assert differing == []


def _sound_values(run: Path) -> Iterator[tuple[str, Any]]:
    yield "run_manifest", read_json(run, layout.MANIFEST)
    yield "eval_plan", read_json(run, layout.PLAN)
    yield "checksums", read_json(run, layout.CHECKSUMS)
    yield "run_summary", read_json(run, layout.SUMMARY)
    yield "adapter_config", read_json(run, layout.ADAPTER_CONFIG)
    yield "trainer_row", read_lines(run, layout.TRAINER_LOG)[1]
    yield "rollout_line", read_lines(run)[0]
    yield "rollout_line", read_lines(run)[-1]


def _mutants(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Drop each key, add one, and put every odd value under each."""
    yield {**value, "a key too many": 1}
    for key in value:
        yield {name: item for name, item in value.items() if name != key}
        yield from ({**value, key: odd} for odd in ODD_VALUES)


def _objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for inner in node.values():
            yield from _objects(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _objects(inner)


def test_a_property_has_the_text_that_stands_under_its_field() -> None:
    number = schema_files.load("evidence")["$defs"]["Number"]["properties"]

    assert number["text"]["description"] == "As printed."
    assert number["needs"]["description"].startswith("The numbers that it is made from")
