"""The evaluator feeds a model the token ids that the host trainer's rollout feeds, turn by turn, for the same words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rollout_words import endings_compared, host_trainer, roll_out

from molforge_env.suites import SCENARIO_IDS

if TYPE_CHECKING:
    from trl import GRPOTrainer

ROOT = Path(__file__).resolve().parents[3]
MODEL = ROOT / "molforge_train" / "models" / "tiny" / "base"
END = "<|im_end|>"


def _call(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


DEFER = _call("defer", "{}")
SUBMIT = _call("submit", '{"rationale": "good"}')
EDIT = _call("edit", '{"slot": "warhead", "fragment": "nitrile"}')
ASSAY = _call("run_assay", '{"tool_name": "dock_target"}')

# The heuristic's way on the easy task: without these edits and readings the reviewers stop a submission.
WAY = [
    _call("edit", '{"slot": "solvent_tail", "fragment": "morpholine"}'),
    _call("edit", '{"slot": "back_pocket", "fragment": "cyano"}'),
    _call("edit", '{"slot": "hinge", "fragment": "azaindole"}'),
    _call("run_assay", '{"tool_name": "assay_toxicity"}'),
    _call("run_assay", '{"tool_name": "estimate_synthesizability"}'),
    _call("run_assay", '{"tool_name": "dock_target"}'),
]
SCRIPTS: dict[str, list[str]] = {
    "submits a candidate": [*(call + END for call in WAY), SUBMIT + END],
    "is stopped by a reviewer": [EDIT + END, ASSAY + END, SUBMIT + END],
    "says nothing of a call": [EDIT + END, "I am done." + END],
    "makes two calls in a message": [EDIT + "\n" + ASSAY + END, "thinking " + DEFER + " then" + END, "stop" + END],
    "calls after the end in the same message": ["\n".join([*WAY, SUBMIT, DEFER]) + END],
    "calls a tool that does not exist": [
        _call("synthesise", "{}") + END,
        _call("reset", '{"seed": 1}') + END,
        "x" + END,
    ],
    "sends an argument that the tool has not": [_call("edit", '{"slot": "warhead", "dose": 3}') + END, "x" + END],
    "sends no object of arguments": [_call("defer", "[1]") + END, _call("edit", '"{}"') + END, "x" + END],
    "sends null or no arguments": [_call("defer", "null") + END, '<tool_call>{"name": "defer"}</tool_call>' + END, ""],
    "sends values of other types": [
        _call("edit", '{"slot": 7, "fragment": NaN}') + END,
        _call("run_assay", '{"tool_name": "\\ud800"}') + END,
        _call("edit", '{"slot": "hinge", "fragment": "\\ud800"}') + END,
        _call("submit", '{"rationale": 123456789012345678901234567890}') + END,
        "x" + END,
    ],
    "writes a block that is no JSON": [DEFER + END, "<tool_call>\n{'name': 'defer'}\n</tool_call>" + END],
    "is cut inside a block": [DEFER + END, '<tool_call>\n{"name": "defer", "argu'],
    "is cut after the last brace": [DEFER + END, '<tool_call>\n{"name": "defer", "arguments": {}}\n', "x" + END],
    "is cut in plain words": [DEFER, "and then"],
    "thinks of a call": ["<think>" + DEFER + "</think>\n" + EDIT + END, "<think>" + DEFER + END],
    "goes on to the step limit": [DEFER + END] * 7,
    "never stops calling": [_call("undo", "{}") + END] * 12,
    "runs into the length limit": [_call("run_assay", '{"tool_name": "search_literature"}') + "pad " * 60 + END] * 9,
}


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return _tokenizer()


def _tokenizer() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(MODEL, padding_side="left")


@pytest.fixture(scope="module")
def trainer(tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> GRPOTrainer:
    return _trainer(tokenizer, tmp_path_factory.mktemp("host"))


def _trainer(tokenizer: Any, folder: Path) -> GRPOTrainer:
    from transformers import AutoModelForCausalLM

    return host_trainer(AutoModelForCausalLM.from_pretrained(MODEL), tokenizer, folder)


ENDINGS = {
    "submits a candidate": "submit",
    "calls after the end in the same message": "submit",
    "goes on to the step limit": "step_limit",
    "never stops calling": "turn_limit",
    "runs into the length limit": "length_limit",
    "writes a block that is no JSON": "malformed_call",
    "is cut inside a block": "malformed_call",
}


def _say(words: list[str], trainer: GRPOTrainer, tokenizer: Any) -> list[str]:
    turns = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in words]
    said = [0]

    def write(contexts: list[list[int]]) -> list[list[int]]:
        turn = said[0]
        said[0] += 1
        ids = turns[turn] if turn < len(turns) else tokenizer("x" + END)["input_ids"]
        return [list(ids) or tokenizer("x")["input_ids"] for _ in contexts]

    recording = roll_out(trainer, "level_0_easy", write)
    return list(endings_compared(recording, "level_0_easy", tokenizer, trainer))


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripted_words_meet_the_same_ids_in_both_loops(script: str, trainer: GRPOTrainer, tokenizer: Any) -> None:
    endings = _say(SCRIPTS[script], trainer, tokenizer)

    assert endings == [ENDINGS.get(script, "no_call")] * 2


XML_EDIT = """<tool_call>
<function=edit>
<parameter=slot>
hinge
</parameter>
<parameter=fragment>
azaindole
</parameter>
</function>
</tool_call>"""


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("qwen2_5", [EDIT + "\n" + ASSAY + END, DEFER + END, "stop" + END]),
        # This one drops earlier thoughts, so that the trainer puts its own version in its place.
        ("qwen3", [EDIT + "\n" + ASSAY + END, "<think>\nhm\n</think>\n\n" + DEFER + END, "stop" + END]),
        # Calls in another form, which the trainer's own parser reads.
        ("qwen3_5_nothink", [XML_EDIT + "\n" + XML_EDIT + END, XML_EDIT + END, "stop" + END]),
    ],
)
def test_other_chat_templates_meet_the_same_ids_in_both_loops(template: str, words: list[str], tmp_path: Path) -> None:
    import trl

    tokenizer = _tokenizer()
    folder = Path(trl.__file__).parent / "chat_templates"
    tokenizer.chat_template = (folder / f"{template}.jinja").read_text(encoding="utf-8")

    assert _say(words, _trainer(tokenizer, tmp_path), tokenizer) == ["no_call", "no_call"]


@pytest.mark.parametrize("scenario_id", SCENARIO_IDS)
def test_sampled_words_of_the_model_meet_the_same_ids_in_both_loops(
    scenario_id: str, trainer: GRPOTrainer, tokenizer: Any
) -> None:
    recording = roll_out(trainer, scenario_id)
    endings = list(endings_compared(recording, scenario_id, tokenizer, trainer))

    assert len(endings) == 2
