"""The artifacts of a run, as models; the JSON Schemas in `schemas/` are generated from them.

One module a family: `fields` (ids, numbers, sealing), `manifest`, `evaluation`, `training`, `identity`.
"""

from molforge_eval.records.evaluation import (
    Decoding,
    EpisodeRecord,
    Evaluation,
    EvaluationPart,
    EvaluationPlan,
    PartSummary,
    PolicyIdentity,
    StepRecord,
    TurnRecord,
)
from molforge_eval.records.identity import ArtifactChecksum, Checksums, LogSeal, PlotRecord, PlotTable
from molforge_eval.records.manifest import Configuration, RunManifest
from molforge_eval.records.training import RolloutLine, RunSummary, TrainerRow

__all__ = [
    "ArtifactChecksum",
    "Checksums",
    "Configuration",
    "Decoding",
    "EpisodeRecord",
    "Evaluation",
    "EvaluationPart",
    "EvaluationPlan",
    "LogSeal",
    "PartSummary",
    "PlotRecord",
    "PlotTable",
    "PolicyIdentity",
    "RolloutLine",
    "RunManifest",
    "RunSummary",
    "StepRecord",
    "TrainerRow",
    "TurnRecord",
]
