from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from molforge_env.conformance import compare_files, main, write_report
from molforge_env.errors import UnreadableError

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def rows(golden):
    """The first rows of a golden file."""

    def read(name: str, count: int = 3) -> list[dict]:
        with gzip.open(golden / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            return [json.loads(line) for _, line in zip(range(count), lines, strict=False)]

    return read


@pytest.fixture
def write(tmp_path):
    def write_rows(rows: list[dict]) -> Path:
        path = tmp_path / "recorded.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write_rows


def test_the_whole_golden_data_is_reproduced(golden) -> None:
    total = compare_files(sorted(golden.iterdir()))

    assert total.differences == []
    assert (total.episodes, total.other_rows) == (711 + 342, 3072 + 256 + 51)
    assert total.quirk_episodes == 27
    assert write_report(total).splitlines()[-1] == f"episodes=1053 steps={total.steps} differences=0"


def test_the_module_runs_as_a_program(golden) -> None:
    files = [str(path) for path in sorted(golden.glob("randomized*"))]
    done = subprocess.run(
        [sys.executable, "-m", "molforge_env.conformance", *files],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )

    assert done.returncode == 0
    assert done.stdout.splitlines() == ["rows outside episodes: 51", "episodes=0 steps=0 differences=0"]


@pytest.mark.parametrize(
    ("name", "change", "field", "step"),
    [
        ("episodes", lambda row: row["steps"][1].update(reward=9.0), "reward", 2),
        ("episodes", lambda row: row["steps"][0].update(mol="3333"), "mol", 1),
        ("episodes", lambda row: row["steps"][0]["comp"][0].__setitem__(1, 0.06), "comp", 1),
        ("episodes", lambda row: row["scores"].update(final_score=0.9), "final_score", None),
        ("episodes", lambda row: row["counters"].update(messages=0), "messages", None),
        ("episodes", lambda row: row["role_metrics"].update(toxicologist=[0, 0, 0]), "toxicologist", None),
        ("episodes", lambda row: row["state_path"].append("[end]"), "state_path", None),
        ("episodes", lambda row: row["actions"].pop(), "steps", None),
        ("episodes", lambda row: row["actions"][0].update(action_type="sleep"), "exception", 1),
        ("tool_episodes", lambda row: row["steps"][0].update(tool_reward=1.0), "tool_reward", 1),
        ("tool_episodes", lambda row: row["steps"][0]["act"]["evidence"].pop(), "evidence", 1),
        ("tool_episodes", lambda row: row["calls"].__setitem__(0, ["sleep", {}]), "exception", 1),
    ],
)
def test_a_changed_value_is_found_with_its_place(rows, write, name, change, field, step) -> None:
    recorded = rows(name)
    change(recorded[2])
    differences = compare_files([write(recorded)]).differences

    assert (differences[0].field, differences[0].step, differences[0].line) == (field, step, 3)
    assert {difference.line for difference in differences} == {3}
    assert "recorded.jsonl episode 3" in str(differences[0])


@pytest.mark.parametrize(
    ("name", "change", "field"),
    [
        ("properties", lambda row: row.update(potency=0.1), "potency"),
        ("properties", lambda row: row.update(objective=0.1), "objective"),
        ("randomized", lambda row: row.update(budget=1), "budget"),
    ],
)
def test_a_changed_row_outside_episodes_is_found(rows, write, name, change, field) -> None:
    recorded = rows(name)
    change(recorded[1])
    (difference,) = compare_files([write(recorded)]).differences

    assert (difference.field, difference.line, difference.step) == (field, 2, None)


def test_an_assay_list_that_was_left_out_is_a_difference(rows, write) -> None:
    (recorded,) = rows("tool_episodes", 1)
    del recorded["steps"][1]["assays"]

    assert compare_files([write([recorded])]).differences[0].field == "assays"


def test_a_descriptor_that_differs_is_found(golden, tmp_path) -> None:
    lines = gzip.decompress((golden / "rdkit_descriptors.csv.gz").read_bytes()).decode().splitlines()
    path = tmp_path / "table.csv"
    path.write_text("\n".join([lines[0], lines[1].replace("0.7136166294745342", "0.8")]), encoding="utf-8")
    (difference,) = compare_files([path]).differences

    assert (difference.field, difference.recorded, difference.line) == ("qed", 0.8, 2)


def test_an_episode_may_start_from_another_molecule(rows, write) -> None:
    (recorded,) = rows("tool_episodes", 1)
    bare = {key: recorded[key] for key in ("scenario", "mode", "calls", "steps")}

    assert compare_files([write([bare])]).differences == []
    assert compare_files([write([bare | {"start": "0000"}])]).differences != []


def test_only_the_first_ten_differences_are_printed(rows, write, capsys) -> None:
    recorded = rows("episodes", 4)
    for row in recorded:
        for step in row["steps"]:
            step["budget"] = -1
    code = main([str(write(recorded))])
    lines = capsys.readouterr().out.splitlines()

    assert code == 1
    assert sum(" budget: recorded -1" in line for line in lines) == 10
    assert lines[10].endswith("more like this")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{", "line 1 of bad.jsonl is not JSON"),
        ("\n[1]", "line 2 of bad.jsonl is not an object"),
        ('{"a": 1}', "line 1 of bad.jsonl fits none of the golden formats"),
        ('{"trap": 1, "scenario": 3}', "line 1 of bad.jsonl does not fit its format at 'scenario'"),
        ('{"reset": 0, "scenario": "x", "budget": NaN}', "line 1 of bad.jsonl does not fit its format"),
        (
            '{"scenario": "level_9", "mode": "dense", "actions": [], "steps": []}',
            "line 1 of bad.jsonl cannot be played",
        ),
        (
            '{"scenario": "level_0_easy", "mode": "dense", "start": "9", "actions": [], "steps": []}',
            "line 1 of bad.jsonl cannot be played",
        ),
        ("[" * 100_000, "line 1 of bad.jsonl is not JSON"),
        (" " * 4_000_001, "line 1 of bad.jsonl is longer than"),
    ],
)
def test_a_line_that_is_no_row_is_named(tmp_path, capsys, text, what) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text, encoding="utf-8")

    assert main([str(path)]) == 3

    first, where, mend = capsys.readouterr().err.splitlines()
    assert first.startswith(what)
    assert where.startswith(f"  where: {path}:")
    assert mend.startswith("  mend:  ")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None, b"\x1f\x8b broken"])
def test_a_file_that_cannot_be_read_is_named(tmp_path, content) -> None:
    path = tmp_path / ("bad.jsonl.gz" if content and content.startswith(b"\x1f") else "bad.jsonl")
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(UnreadableError, match="cannot be read"):
        compare_files([path])


def test_without_a_file_the_program_says_how_to_call_it(capsys) -> None:
    assert main([]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_an_absent_file_is_named_without_the_numbers_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError) as raised:
        compare_files([tmp_path / "missing.jsonl"])

    assert str(raised.value).startswith("missing.jsonl cannot be read: No such file or directory\n")
