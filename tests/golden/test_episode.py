"""One whole episode, word for word and number for number: what a model reads and what the laboratory answers."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from molforge_env.interface import prompt_text
from molforge_env.tools import ToolSession

CALLS = (
    ("run_assay", {"tool_name": "assay_toxicity", "rationale": "look before the leap"}),
    ("edit", {"slot": "solvent_tail", "fragment": "morpholine"}),
    ("edit", {"slot": "solvent_tail", "fragment": "unobtainium"}),
    ("submit", {}),
    ("restart", {}),
    ("run_assay", {"tool_name": "run_md_simulation"}),
    ("defer", {}),
    ("submit", {}),
    ("run_assay", {"tool_name": "dock_target"}),
)


@pytest.mark.parametrize("length", ["full", "compact"])
def test_an_episode_reads_as_it_always_did(length: str, snapshot: SnapshotAssertion) -> None:
    session = ToolSession(observation_length=length)
    lines = [prompt_text(length) + session.reset(scenario_id="level_2_hard")]
    for tool, arguments in CALLS:
        if session.done:
            break
        outcome = session.call(tool, arguments)
        parts = " ".join(f"{name}{value:+}" for name, value in outcome.components)
        lines += [f"> {tool} {arguments}", f"{outcome.reward:+} {outcome.governance_status} {parts}", outcome.text]
    lines += [f"{name} {value}" for name, value in session.scores.items()]

    assert session.done
    assert "\n".join(lines) == snapshot
