"""The report card of a finished episode: the one text that names true properties, and only after the end."""

from __future__ import annotations

from molforge_env.arithmetic import text_of
from molforge_env.episodes import Episode
from molforge_env.grading import grade
from molforge_env.oracles import Properties, passed_constraints, true_properties

_SHOWN_SCORES = (
    "final_score",
    "candidate_score",
    "constraint_margin_score",
    "submission_score",
    "progress_score",
    "coordination_score",
    "evidence_score",
)


def write_report_card(episode: Episode) -> str:
    """Write the report card.

    Args:
        episode: A finished episode; on an open one the text would give hidden values away.
    """
    properties = true_properties(episode.molecule, trap=episode.trap, shift=episode.shift)
    scores = grade(episode)
    lines = [
        f"scenario: {episode.scenario.scenario_id}",
        f"molecule: {episode.molecule.signature}",
        "true properties: "
        + ", ".join(
            f"{name} {text_of(getattr(properties, name), decimals=3)}"
            for name in ("potency", "toxicity", "synth", "novelty")
        ),
        *(f"{name}: {text_of(scores[name], decimals=3)}" for name in _SHOWN_SCORES),
        *_list_constraints(episode, properties),
        f"messages: {len(episode.messages)}, objections: {episode.objection_messages}",
        f"assays: {len(episode.oracle_log)}",
    ]
    if episode.shift:
        lines.append("note: the target shifted.")
    if episode.restart_used:
        lines.append("note: the series was restarted.")
    if not episode.submitted:
        lines.append("note: nothing was submitted.")
    return "\n".join(lines)


def _list_constraints(episode: Episode, properties: Properties) -> list[str]:
    scenario = episode.scenario
    limits = (
        ("potency", ">=", scenario.potency_min),
        ("toxicity", "<=", scenario.toxicity_max),
        ("synth", ">=", scenario.synth_min),
    )
    return [
        f"{name} {sign} {text_of(limit, decimals=3)}: {'pass' if passed else 'fail'} "
        f"({text_of(getattr(properties, name), decimals=3)})"
        for (name, sign, limit), passed in zip(limits, passed_constraints(scenario, properties), strict=True)
    ]
