"""One episode in the terminal, for a person who wants to know what the model is up against."""

from __future__ import annotations

import click

from molforge_env.arithmetic import text_of
from molforge_env.assays import RESTART_COST, TOOL_COSTS
from molforge_env.ceiling import ceiling_of
from molforge_env.errors import ToolArgumentError
from molforge_env.models import SLOTS
from molforge_env.molecules import FRAGMENT_NAMES
from molforge_env.tool_schemas import TOOL_ARGUMENTS
from molforge_env.tools import ToolOutcome, ToolSession

_PROMPT = "lab"
_QUIT = ("quit", "exit")


def play_in_terminal(*, scenario_id: str, suite: str, seed: int | None, reward_mode: str) -> None:
    """Play one episode, a line of input for each step.

    Raises:
        UnknownScenarioError: The scenario is not known.
        UsageError: A suite of variants was asked for without a seed.
    """
    session = ToolSession()
    text = session.reset(suite=suite, scenario_id=scenario_id, seed=seed, reward_mode=reward_mode)
    click.echo(_write_help())
    click.echo(text)
    while not session.done:
        words = click.prompt(_PROMPT, prompt_suffix="> ").split()
        if words[0] in _QUIT:
            click.echo("The episode was left unfinished; an unfinished episode counts 0.")
            return
        if words[0] == "help":
            click.echo(_write_help())
            continue
        try:
            outcome = session.call(*_call_from_words(words))
        except ToolArgumentError as error:
            click.echo(f"{error.what} ({error.mend})")
            continue
        click.echo(f"\n{outcome.text}\nreward {text_of(outcome.reward, decimals=4)}\n")
    click.echo(_write_end(session, session.outcomes[-1]))


def _call_from_words(words: list[str]) -> tuple[str, dict[str, str]]:
    tool = "run_assay" if words[0] == "assay" else words[0]
    names = [name for name in TOOL_ARGUMENTS.get(tool, ()) if name != "rationale"]
    return tool, dict(zip(names, words[1:], strict=False))


def _write_help() -> str:
    lines = ["edit SLOT FRAGMENT | assay TOOL | submit | restart | defer | help | quit"]
    lines += [f"  {slot}: {', '.join(FRAGMENT_NAMES[slot])}" for slot in SLOTS]
    lines.append(f"  tools: {', '.join(f'{tool} {cost}' for tool, cost in TOOL_COSTS.items())}; restart {RESTART_COST}")
    return "\n".join(lines)


def _write_end(session: ToolSession, last: ToolOutcome) -> str:
    lines = [session.observation.report_card, f"final score {text_of(last.scores['final_score'], decimals=4)}"]
    best = ceiling_of(session.scenario).final_score
    lines.append(f"best attainable {text_of(best, decimals=4)}")
    return "\n".join(lines)
