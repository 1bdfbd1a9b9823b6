"""Types that several artifacts share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, AwareDatetime, Field, PlainSerializer

FORMAT_VERSION: Final = 1
"""Version of the run directory that this product writes. Version 0 is the public script's layout."""

FormatVersion = Literal[1]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
RunId = Annotated[str, Field(pattern=r"^run-[0-9a-f]{12}$")]
EpisodeId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,120}$")]
MoleculeCode = Annotated[str, Field(pattern=r"^[0-3]{4}$")]
Score = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
Seed = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
Tool = Literal["edit", "run_assay", "submit", "restart", "defer"]
ActionType = Literal["edit", "run_assay", "submit", "restart", "defer", "none"]
GovernanceStatus = Literal["ready", "executed", "needs_revision", "policy_veto"]
RewardMode = Literal["assay_gated", "curriculum", "dense"]
ObservationLength = Literal["full", "compact"]
EndedBy = Literal[
    "submit", "step_limit", "budget", "no_call", "malformed_call", "turn_limit", "length_limit", "env_error"
]
COMPLETED_ENDINGS = frozenset({"submit", "step_limit", "budget"})
"""Endings that the laboratory itself gave; the scores of such an episode are the grader's."""

RelativePath = Annotated[str, Field(min_length=1, max_length=400, pattern=r"^[^/\\:\x00][^\\:\x00]*$")]


def utc_text(moment: datetime) -> str:
    """Spell a moment in UTC with seconds, as every artifact does."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _within_calendar(moment: datetime) -> datetime:
    try:
        moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("in UTC the moment is outside the years 1 to 9999") from error
    return moment


Moment = Annotated[
    AwareDatetime, AfterValidator(_within_calendar), PlainSerializer(utc_text, return_type=str, when_used="json")
]
"""An instant with its zone; written in UTC to the second."""
