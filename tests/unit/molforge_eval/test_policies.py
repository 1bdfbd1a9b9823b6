from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from molforge_env.errors import UsageError
from molforge_env.policies import POLICIES
from molforge_eval.policies import PolicySpec, open_policy, parse_policy, scripted_names

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("hf:models/base", PolicySpec("hf", "models/base", None)),
        ("hf:Qwen/Qwen3-0.6B+runs/a/adapters", PolicySpec("hf", "Qwen/Qwen3-0.6B", "runs/a/adapters")),
        ("scripted:heuristic", PolicySpec("scripted", "heuristic", None)),
    ],
)
def test_a_policy_is_read_and_spelled_the_same(text: str, spec: PolicySpec) -> None:
    assert parse_policy(text) == spec
    assert spec.text() == text


def test_an_adapter_may_be_given_apart() -> None:
    assert parse_policy("hf:models/base", adapter="a") == PolicySpec("hf", "models/base", "a")


@pytest.mark.parametrize(
    ("text", "adapter", "said"),
    [
        ("heuristic", None, "policy 'heuristic' is not known"),
        ("gpt:model", None, "policy 'gpt:model' is not known"),
        ("hf:", None, "policy 'hf:' is not known"),
        ("hf:+adapter", None, "lacks a name"),
        ("hf:model+", None, "lacks a name"),
        ("hf:model+one", "two", "two adapters were given, 'one' and 'two'"),
        ("scripted:heuristic", "a", "has no adapter"),
        ("scripted:grandmaster", None, "'grandmaster' is not known"),
    ],
)
def test_a_wrong_policy_is_refused_in_three_lines(text: str, adapter: str | None, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)) as refusal:
        parse_policy(text, adapter=adapter)

    assert len(str(refusal.value).splitlines()) == 3


def test_every_reference_policy_can_be_opened() -> None:
    assert scripted_names() == tuple(POLICIES)
    for name in scripted_names():
        assert open_policy(parse_policy(f"scripted:{name}")).identity.name == name


def test_a_scripted_policy_needs_no_torch_and_a_model_says_how_to_get_it() -> None:
    program = """
import sys
for name in ("torch", "transformers", "peft", "trl"):
    sys.modules[name] = None
from molforge_env.command_line import run_to_code
from molforge_eval.cli.evaluate import cli
codes = [run_to_code(cli, ["run", "--seeds", "0", "--quiet", "--policy", p]) for p in ("scripted:heuristic", "hf:x/y")]
print(codes)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[0, 2]"
    assert done.stderr.splitlines() == [
        "playing a model needs torch, transformers, peft, trl, which this environment has not",
        "  where: policy hf:x/y",
        '  mend:  Install them, in a clone: pip install -c constraints.txt ".[train]"',
    ]
