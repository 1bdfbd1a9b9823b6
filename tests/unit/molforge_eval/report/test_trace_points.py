"""Every id of the sample run is followed to its rows, and so is every point of its curves."""

from __future__ import annotations

import importlib
import re
import shutil
import tarfile
from pathlib import Path

import orjson
import pytest
from evidence_builder import edit_json
from packet_builder import packet_of

from molforge_env.command_line import run_to_code
from molforge_env.errors import UsageError
from molforge_eval import layout
from molforge_eval.cli.report import cli
from molforge_eval.report.build import PacketOptions, build_packet
from molforge_eval.report.number_rows import LADDER_TABLE
from molforge_eval.report.trace import choose, trace_numbers
from molforge_eval.report.trace_points import find_point
from molforge_eval.report.trace_subject import open_subject
from molforge_eval.report.trace_text import trace_text
from molforge_eval.run_directory import load

ROOT = Path(__file__).resolve().parents[4]
SAMPLE = ROOT / "tests" / "data" / "sample_run.tar.gz"
OPTIONS = PacketOptions(html=False, pdf=False, pack=False)


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> Path:
    """The sample run with a packet for which it was played again."""
    folder = tmp_path_factory.mktemp("sample")
    with tarfile.open(SAMPLE) as archive:
        archive.extractall(folder, filter="data")
    (run,) = folder.iterdir()
    build_packet(run, options=OPTIONS)
    return run


@pytest.fixture(scope="module")
def old_packed(old_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = Path(shutil.copytree(old_run, tmp_path_factory.mktemp("points-old") / "run"))
    build_packet(root, options=OPTIONS)
    return root


def evidence_in(root: Path):
    return orjson.loads((root / layout.EVIDENCE).read_bytes())


def ask(*arguments: str, capsys) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run_to_code(cli, ["trace", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_every_id_of_the_sample_run_is_followed_to_rows_formula_and_hashes(sample, capsys) -> None:
    ids = [number["id"] for number in evidence_in(sample)["numbers"]]
    code, out, _ = ask(str(sample), *ids, "--format", "json", "--rows", "2", capsys=capsys)
    traced = orjson.loads(out)["numbers"]

    assert code == 0
    assert [number["id"] for number in traced] == ids
    assert {"check.episodes_replayed", "findings.error", "artifacts.count"} < set(ids)
    for number in traced:
        module, _, function = number["computed_by"].partition(":")
        hashed = [file for file in number["files"] if file["sha256"] is not None]

        assert callable(getattr(importlib.import_module(module), function))
        assert number["formula"]
        assert (ROOT / number["formula_file"]).is_file()
        assert (number["standing"], number["again"]) == ("equal", number["value"]), number["id"]
        # A finding that is not there has no row.
        assert number["id"].startswith("findings.") or (number["rows"] and hashed), number["id"]
        assert all(row["line"] for row in number["rows"])


def test_every_point_of_the_sample_run_is_followed_to_its_rows(sample) -> None:
    subject = open_subject(load(sample))
    addresses = [f"curve.{note.name}@{point.step}" for note in subject.evidence.curves for point in note.curve.points]
    trace = trace_numbers(subject, choose(subject, addresses), shown=None)

    assert len(trace.numbers) == len(set(addresses)) > 100
    assert {number.standing for number in trace.numbers} == {"equal"}
    assert trace.is_sound()
    for number in trace.numbers:
        assert number.rows, number.id
        assert {row.file for row in number.rows} <= set(layout.LOGS)
    assert "curve.loss@" in trace_text(trace)


@pytest.mark.parametrize("curve", ["reward", "loss", "training_reward", "strict_score"])
def test_the_mean_of_the_rows_of_a_point_is_the_point(sample, curve) -> None:
    subject = open_subject(load(sample))
    points = next(note.curve.points for note in subject.evidence.curves if note.name == curve)
    for point in points:
        (number,) = trace_numbers(subject, choose(subject, [f"curve.{curve}@{point.step}"]), shown=None).numbers
        values = [float(row.value) for row in number.rows]

        assert number.value == pytest.approx(sum(values) / len(values))


def test_the_points_of_an_old_log_are_stretches_of_its_lines(old_packed) -> None:
    subject = open_subject(load(old_packed))
    points = next(note.curve.points for note in subject.evidence.curves if note.name == "call_reward")
    addresses = [f"curve.call_reward@{point.step}" for point in points]
    numbers = trace_numbers(subject, choose(subject, addresses), shown=None).numbers
    lines = [row.line for number in numbers for row in number.rows]

    assert lines == sorted(set(lines))
    for number in numbers:
        values = [float(row.value) for row in number.rows]
        assert number.value == pytest.approx(sum(values) / len(values))
        assert number.standing == "equal"


def test_a_rung_of_the_ladder_is_followed_to_the_table_of_the_product(sample, capsys) -> None:
    code, out, _ = ask(str(sample), "score.level_1_medium.heuristic", capsys=capsys)
    row = next(line for line in out.splitlines() if f"{LADDER_TABLE}:" in line).strip()
    line = int(row.partition(":")[2].split()[0])

    assert code == 0
    assert "ships with the product" in out
    assert row.rpartition(" ")[2] in (ROOT / LADDER_TABLE).read_text().splitlines()[line - 1]


@pytest.mark.parametrize("number_id", ["check.steps_replayed", "findings.error", "artifacts.count", "check.plots"])
def test_a_count_of_the_check_that_was_forged_is_code_1(sample, tmp_path, capsys, number_id) -> None:
    root = Path(shutil.copytree(sample, tmp_path / "run"))

    def forge(value) -> None:
        next(n for n in value["numbers"] if n["id"] == number_id).update(value=12345, text="12345")

    edit_json(root, layout.EVIDENCE, forge)
    code, out, _ = ask(str(root), number_id, capsys=capsys)

    assert code == 1
    assert "again    differs" in out


def test_a_point_that_was_forged_is_code_1(sample, tmp_path, capsys) -> None:
    root = Path(shutil.copytree(sample, tmp_path / "run"))
    place, note = next((n, note) for n, note in enumerate(evidence_in(root)["curves"]) if note["name"] == "loss")
    step = note["curve"]["points"][0][1]
    edit_json(root, layout.EVIDENCE, lambda v: v["curves"][place]["curve"]["points"][0].__setitem__(2, 77.0))
    code, out, _ = ask(str(root), f"curve.loss@{step}", capsys=capsys)

    assert code == 1
    assert "value    77  (77.0)" in out


def test_a_packet_alone_counts_what_it_carries_and_says_what_it_does_not(sample, capsys) -> None:
    packet = packet_of(sample)
    code, out, _ = ask(str(packet), "check.episodes_replayed", "check.plots", "artifacts.bytes", capsys=capsys)
    told = [line.strip() for line in out.splitlines() if line.startswith("  again")]

    assert code == 0
    assert [re.split("[:,]", line.removeprefix("again"))[0].strip() for line in told] == [
        "equal",
        "not recomputed",
        "equal",
    ]


@pytest.mark.parametrize(
    ("address", "near"),
    [
        ("curve.los@3", "Near it: curve.loss@STEP"),
        ("curve.loss@99999", "Steps near it: "),
        ("loss@1", "curve.loss@STEP"),
        ("curve.loss@x", "curve.loss@STEP"),
        ("@" * 5000, "Near it: curve."),
    ],
)
def test_an_address_of_no_point_is_code_2_in_three_lines(sample, capsys, address, near) -> None:
    code, _, err = ask(str(sample), address, capsys=capsys)

    assert code == 2
    assert len(err.splitlines()) == 3
    assert near in err
    assert len(err) < 600


def test_a_run_without_curves_says_so(old_packed) -> None:
    evidence = open_subject(load(old_packed)).evidence

    with pytest.raises(UsageError) as raised:
        find_point(evidence.model_copy(update={"curves": ()}), "curve.loss@1")
    assert "It has no curve" in str(raised.value)
