"""The page about every field names every field, and only codes that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from molforge_eval import records
from molforge_eval.catalogue import codes
from molforge_eval.records.evaluation import TaskSummary

MODELS: tuple[type[BaseModel], ...] = (
    records.RunManifest,
    records.Configuration,
    records.EvaluationPlan,
    records.Evaluation,
    records.PartSummary,
    TaskSummary,
    records.EpisodeRecord,
    records.StepRecord,
    records.TurnRecord,
    records.RolloutLine,
    records.TrainerRow,
    records.RunSummary,
    records.Checksums,
    records.PlotRecord,
)


@pytest.fixture
def page(repository: Path) -> str:
    return (repository / "docs" / "recomputed.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_field_of_a_record_stands_once_in_its_table(page: str, model: type[BaseModel]) -> None:
    table = page.split(f"## {model.__name__}\n")[1].split("\n## ", maxsplit=1)[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    named = [field for row in rows for field in re.findall(r"`(\w+)`", row)]

    assert sorted(named) == sorted(model.model_fields)


def test_every_code_of_the_page_is_one(page: str) -> None:
    named = set(re.findall(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`", page))

    assert named - set(codes()) == set()
    assert len(named) > 60
