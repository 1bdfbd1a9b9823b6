"""Pages that are held to the programs: examples run, links lead somewhere, commands and flags exist."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from pytest_examples import EvalExample, find_examples

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PROGRAMS = {
    "molforge-env": "molforge_env.cli",
    "molforge-eval": "molforge_eval.cli.evaluate",
    "molforge-report": "molforge_eval.cli.report",
    "molforge-train": "molforge_train.cli",
}


MODULES_WITH_EXAMPLES = [
    path
    for package in ("molforge_env", "molforge_eval", "molforge_train", "molforge_tiny")
    for path in sorted((ROOT / package).rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


def _page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=_page_id)
def test_the_examples_of_a_page_run_and_print_what_it_shows(page: Path, eval_example: EvalExample) -> None:
    for example in find_examples(str(page)):
        eval_example.run_print_check(example)


@pytest.mark.parametrize("path", MODULES_WITH_EXAMPLES, ids=_page_id)
def test_the_examples_of_a_docstring_print_what_it_shows(path: Path) -> None:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)

    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=_page_id)
def test_a_link_inside_the_repository_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    inside = [target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:|#", target)]

    assert [target for target in inside if not (page.parent / target).exists()] == []


def _commands_named_in(text: str) -> list[list[str]]:
    """Words of each command in code: from the program's name to the end of the code span or line."""
    code = re.findall(r"```[a-z]*\n(.*?)```", text, re.DOTALL) + re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)
    lines = [line for block in code for line in block.replace("\\\n", " ").splitlines()]
    return [
        [word.strip("[]().,;:") for word in line.split("#")[0].split("|")[0][found.start() :].split()]
        for line in lines
        if (found := re.search(r"(?<![\w/-])molforge-(env|eval|report|train)\b(?!-)", line.split("#")[0].split("|")[0]))
    ]


def _fault_of(words: list[str]) -> str | None:
    """What a named command asks for that the program lacks."""
    command: click.Command = importlib.import_module(PROGRAMS[words[0]]).cli
    flags = {name for option in command.params for name in option.opts} | {"--help"}
    for word in words[1:]:
        if word.startswith("--"):
            flag = word.partition("=")[0]
            if flag not in flags:
                return f"{' '.join(words)}: {command.name} has no {flag}"
        elif isinstance(command, click.Group) and re.fullmatch(r"[a-z][a-z-]*", word):
            child = command.get_command(click.Context(command), word)
            if child is None:
                return f"{' '.join(words)}: there is no {word}"
            command = child
            flags |= {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    return None


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "cli.md"], ids=_page_id)
def test_a_command_that_a_page_names_exists_with_its_flags(page: Path) -> None:
    named = _commands_named_in(page.read_text(encoding="utf-8"))

    assert [fault for words in named if (fault := _fault_of(words))] == []


def test_the_check_of_named_commands_finds_a_command_and_its_flag() -> None:
    assert _commands_named_in("run `molforge-train grpo --preset tiny-cpu` now") == [
        ["molforge-train", "grpo", "--preset", "tiny-cpu"]
    ]
    assert _fault_of(["molforge-train", "grpo", "--preset", "tiny-cpu"]) is None
    assert _fault_of(["molforge-train", "grpo", "--persist"]) == "molforge-train grpo --persist: grpo has no --persist"
    assert _fault_of(["molforge-train", "dance"]) == "molforge-train dance: there is no dance"


def test_the_command_line_page_is_what_the_programs_say() -> None:
    line = [sys.executable, "-m", "tools.cli_reference"]
    shown = subprocess.run(line, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout

    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == shown
