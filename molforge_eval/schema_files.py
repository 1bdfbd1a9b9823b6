"""The JSON Schema of every artifact, generated from the models and committed under `schemas/`.

`python -m molforge_eval.schema_files` writes them; a test holds the committed files equal to the models. Validation
reads the committed files only, through a registry that is closed: nothing is fetched.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from molforge_eval.records import (
    Checksums,
    Evaluation,
    EvaluationPlan,
    PlotTable,
    RolloutLine,
    RunManifest,
    RunSummary,
    TrainerRow,
)
from molforge_eval.records.artifacts import AdapterConfig, ArchiveListing, MetricsRow, PdfListing
from molforge_eval.records.conversations import Conversation
from molforge_eval.records.identity import AdapterHeader, PlotText
from molforge_eval.records.old import (
    OldEvaluation,
    OldManifest,
    OldRolloutLine,
    OldSummary,
    OldTrainerRow,
    OldTrainerState,
)
from molforge_eval.shipped import schema_folder

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def models() -> Mapping[str, type[BaseModel]]:
    """List the model behind each schema, by the schema's name."""
    from molforge_eval.report.comparison_evidence import ComparisonEvidence
    from molforge_eval.report.evidence import Evidence
    from molforge_eval.report.trace import Trace
    from molforge_eval.validation_result import ValidationResult

    return {
        "adapter_config": AdapterConfig,
        "adapter_header": AdapterHeader,
        "archive_listing": ArchiveListing,
        "checksums": Checksums,
        "comparison": ComparisonEvidence,
        "conversation": Conversation,
        "eval_plan": EvaluationPlan,
        "evaluation": Evaluation,
        "evaluation_v0": OldEvaluation,
        "evidence": Evidence,
        "metrics_row": MetricsRow,
        "pdf_listing": PdfListing,
        "plot_data": PlotTable,
        "plot_text": PlotText,
        "rollout_line": RolloutLine,
        "rollout_line_v0": OldRolloutLine,
        "run_manifest": RunManifest,
        "run_manifest_v0": OldManifest,
        "run_summary": RunSummary,
        "run_summary_v0": OldSummary,
        "trace": Trace,
        "trainer_row": TrainerRow,
        "trainer_row_v0": OldTrainerRow,
        "trainer_state": OldTrainerState,
        "validation_result": ValidationResult,
    }


class _Described(GenerateJsonSchema):
    """Gives a property the text that stands under its field."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Describe the properties of one model."""
        described = super().model_schema(schema)
        texts = field_texts(schema["cls"])
        for name, value in described.get("properties", {}).items():
            if name in texts and "description" not in value:
                value["description"] = texts[name]
        return described


def field_texts(model: type[BaseModel]) -> dict[str, str]:
    """Read the texts that stand under the fields of a model, by field."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    texts = {}
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            value = text.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                texts[field.target.id] = " ".join(value.value.split())
    return texts


def file_name(name: str) -> str:
    """Return the file name, which is also the relative `$id`, of a schema."""
    return f"{name}.schema.json"


def generate(name: str) -> bytes:
    """Spell one schema from its model."""
    schema = models()[name].model_json_schema(mode="validation", schema_generator=_Described)
    head = {"$schema": DIALECT, "$id": file_name(name)}
    return orjson.dumps(head | _without_titles(schema), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


@cache
def load(name: str) -> Mapping[str, Any]:
    """Read one committed schema."""
    schema: dict[str, Any] = orjson.loads((schema_folder() / file_name(name)).read_bytes())
    return schema


def write_all(folder: Path) -> tuple[Path, ...]:
    """Write every schema and remove those that no model stands behind."""
    wanted = {folder / file_name(name): generate(name) for name in sorted(models())}
    for path, data in wanted.items():
        path.write_bytes(data)
    for stale in sorted(set(folder.glob("*.schema.json")) - set(wanted)):
        stale.unlink()
    return tuple(wanted)


def _without_titles(node: Any) -> Any:
    """Drop the titles that pydantic derives from names; they say nothing that the key does not."""
    if isinstance(node, dict):
        return {
            key: {name: _without_titles(inner) for name, inner in value.items()}
            if key in ("properties", "$defs")
            else _without_titles(value)
            for key, value in node.items()
            if not (key == "title" and isinstance(value, str))
        }
    if isinstance(node, list):
        return [_without_titles(item) for item in node]
    return node


if __name__ == "__main__":
    for written in write_all(Path(sys.argv[1]) if len(sys.argv) > 1 else schema_folder()):
        print(written)  # noqa: T201 - the command's answer
