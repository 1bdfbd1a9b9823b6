from __future__ import annotations

import importlib
import shutil
from pathlib import Path

import orjson
import pytest
from evidence_builder import edit_json, edit_line
from packet_builder import packet_of

from molforge_env.command_line import run_to_code
from molforge_env.errors import UnreadableError, UsageError
from molforge_eval import layout
from molforge_eval.archive import pack_run
from molforge_eval.cli.report import cli
from molforge_eval.report.build import PacketOptions, build_packet
from molforge_eval.report.number_rows import LADDER_TABLE, NumberRows
from molforge_eval.report.number_rules import rule_of
from molforge_eval.report.trace import choose, trace_numbers
from molforge_eval.report.trace_subject import open_subject
from molforge_eval.run_directory import load
from molforge_eval.sealing import seal_run
from molforge_eval.shape import shape_of

ROOT = Path(__file__).resolve().parents[4]
OPTIONS = PacketOptions(html=False, pdf=False, replay=False, pack=False)


@pytest.fixture(scope="module")
def packed(built_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with its packet."""
    root = Path(shutil.copytree(built_run, tmp_path_factory.mktemp("traced") / "run"))
    build_packet(root, options=OPTIONS)
    return root


@pytest.fixture(scope="module")
def old_packed(old_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = Path(shutil.copytree(old_run, tmp_path_factory.mktemp("traced-old") / "run"))
    build_packet(root, options=OPTIONS)
    return root


def traced(root: Path, *ids: str, shown: int | None = None):
    subject = open_subject(load(root))
    return trace_numbers(subject, choose(subject, ids), shown=shown)


def ask(*arguments: str, capsys) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run_to_code(cli, ["trace", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.parametrize("name", ["packed", "old_packed"])
def test_every_number_of_a_packet_is_what_its_records_give(name, request) -> None:
    trace = traced(request.getfixturevalue(name), shown=0)
    differing = [(number.id, number.standing_reason) for number in trace.numbers if number.standing == "differs"]

    assert differing == []
    assert trace.is_sound()
    assert len(trace.numbers) > 100


@pytest.mark.parametrize("name", ["packed", "old_packed"])
def test_every_number_has_a_rule_and_every_rule_names_what_computes_it(name, request) -> None:
    subject = open_subject(load(request.getfixturevalue(name)))
    without = [number.id for number in subject.evidence.numbers if rule_of(number.id) is None]

    assert without == [], "say in molforge_eval/data/number_rules.toml which rows they are made from"
    for number in subject.evidence.numbers:
        module, _, function = rule_of(number.id).by.partition(":")

        assert callable(getattr(importlib.import_module(module), function))


@pytest.mark.parametrize("name", ["packed", "old_packed"])
def test_a_row_is_named_by_the_line_on_which_its_value_stands(name, request) -> None:
    root = request.getfixturevalue(name)
    trace = traced(root, shown=3)
    rows = [row for number in trace.numbers for row in number.rows]

    assert len(rows) > 100
    for row in rows:
        folder = ROOT if row.file == LADDER_TABLE else root
        line = (folder / row.file).read_text().splitlines()[row.line - 1]
        key = row.pointer.rpartition("/")[2]
        if row.file.endswith(".jsonl"):
            value = orjson.loads(line)
            found = value.get(key) if key not in {"max_budget", ""} else None
            assert found is None or str(found) == row.value or isinstance(found, dict | list)
        elif not row.value.endswith(" items"):
            assert f'"{key}"' in line or key.isdigit()
            assert row.value in {"None", "True", "False"} or row.value[:20] in line


def test_the_mean_of_the_rows_is_the_number(packed) -> None:
    for number_id in ("score.level_0_easy.before", "curve.reward.first", "curve.loss.last", "score.level_2_hard.after"):
        subject = open_subject(load(packed))
        number = subject.evidence.number(number_id)
        values = [row.value for row in NumberRows(subject.run, subject.again).of(number)]

        assert number.value == pytest.approx(sum(values) / len(values))


def test_counts_and_extremes_are_those_of_the_rows(packed) -> None:
    subject = open_subject(load(packed))
    rows = NumberRows(subject.run, subject.again)

    def values(number_id: str) -> list:
        return [row.value for row in rows.of(subject.evidence.number(number_id))]

    assert subject.evidence.number("curve.grad_norm.peak").value == max(values("curve.grad_norm.peak"))
    assert subject.evidence.number("curve.grad_norm.lowest").value == min(values("curve.grad_norm.lowest"))
    assert subject.evidence.number("curve.kl.points").value == len(values("curve.kl.points"))
    assert subject.evidence.number("training.episodes").value == len(set(values("training.episodes")))
    assert subject.evidence.number("conduct.late.episodes").value == len(values("conduct.late.episodes"))
    assert subject.evidence.number("sampled.after_counted").value == len(values("sampled.after_counted"))


def test_a_number_names_the_numbers_that_it_is_made_from(packed) -> None:
    number = traced(packed, "score.mean.gap").numbers[0]

    assert [needed.id for needed in number.needs] == ["score.mean.before", "score.mean.after", "score.mean.ceiling"]
    assert [needed.id for needed in number.needs[0].needs] == [
        f"score.{task}.before" for task in ("level_0_easy", "level_1_medium", "level_2_hard")
    ]
    assert {file.path: file.standing for file in number.files} == {
        **dict.fromkeys(layout.EVALUATIONS, "as sealed"),
        LADDER_TABLE: "ships with the product",
    }


def test_a_number_of_the_packet_that_the_records_do_not_give_is_code_1(packed, tmp_path, capsys) -> None:
    root = Path(shutil.copytree(packed, tmp_path / "run"))
    edit_json(root, layout.EVIDENCE, lambda value: value["numbers"][9].update(value=0.999, text="1.00"))
    number_id = orjson.loads((root / layout.EVIDENCE).read_bytes())["numbers"][9]["id"]
    code, out, _ = ask(str(root), number_id, capsys=capsys)

    assert code == 1
    assert "again    differs" in out


def test_a_packet_has_no_say_in_how_its_numbers_are_made(packed, tmp_path) -> None:
    root = Path(shutil.copytree(packed, tmp_path / "run"))
    sound = traced(root, "score.mean.after").numbers

    def forge(value) -> None:
        ids = [number["id"] for number in value["numbers"]]
        for number in value["numbers"]:
            number.update(name="forged", formula="forged", needs=ids)
            number.update(sources=[{"file": layout.ROLLOUTS, "part": "forged", "sha256": None}])

    edit_json(root, layout.EVIDENCE, forge)

    assert traced(root, "score.mean.after").numbers == sound


def test_a_file_that_is_not_what_was_sealed_is_code_1(packed, tmp_path, capsys) -> None:
    root = Path(shutil.copytree(packed, tmp_path / "run"))
    edit_line(root, 1, layout.TRAINER_LOG, reward=77.0)
    code, out, _ = ask(str(root), "curve.reward.peak", capsys=capsys)

    assert code == 1
    assert "differs from the seal" in out
    assert "the records give 77.0" in out


def test_a_run_without_a_packet_is_traced_from_its_records(run_copy, capsys) -> None:
    seal_run(run_copy)
    code, out, _ = ask(str(run_copy), "score.mean.after", capsys=capsys)

    assert code == 0
    assert "the run has no evidence.json" in out


def test_an_archive_and_a_packet_say_what_the_run_says(packed, tmp_path, capsys) -> None:
    pack_run(packed, tmp_path / "run.zip")
    packet = packet_of(packed)
    answers = [
        orjson.loads(ask(str(path), "score.mean.difference", "curve.kl.last", "--format", "json", capsys=capsys)[1])
        for path in (packed, tmp_path / "run.zip", packet)
    ]

    assert answers[0]["numbers"] == answers[1]["numbers"] == answers[2]["numbers"]


def test_a_packet_without_logs_says_that_it_does_not_carry_them(packed, capsys) -> None:
    packet = packet_of(packed, without=tuple(name for name, path in layout.ENCLOSURES.items() if path in layout.LOGS))
    code, out, _ = ask(str(packet), "curve.reward.last", capsys=capsys)

    assert code == 0
    assert f"again    not recomputed: the packet does not carry {layout.TRAINER_LOG}" in out


def test_without_an_id_and_for_a_pattern_the_numbers_are_listed(packed, capsys) -> None:
    code, out, _ = ask(str(packed), capsys=capsys)
    some = ask(str(packed), "curve.reward.*", capsys=capsys)[1]

    assert code == 0
    assert len(out.splitlines()) == len(orjson.loads((packed / layout.EVIDENCE).read_bytes())["numbers"])
    assert [line.split()[0] for line in some.splitlines()] == [
        line.split()[0] for line in out.splitlines() if line.startswith("curve.reward.")
    ]


@pytest.mark.parametrize("mark", ["x", "*x"])
def test_an_id_without_end_is_shown_in_part(packed, capsys, mark) -> None:
    code, _, err = ask(str(packed), mark * 50_000, capsys=capsys)

    assert code == 2
    assert len(err) < 600


def test_an_unknown_id_is_code_2_and_names_what_is_near(packed, capsys) -> None:
    code, _, err = ask(str(packed), "score.mean.differ", capsys=capsys)

    assert code == 2
    assert len(err.splitlines()) == 3
    assert "Near it: score.mean.difference" in err


def test_a_pattern_that_fits_nothing_is_code_2(packed) -> None:
    with pytest.raises(UsageError, match="no number of this run fits the pattern"):
        choose(open_subject(load(packed)), ["weather.*"])


@pytest.mark.parametrize("rows", ["-1", "some", "1.5"])
def test_a_count_of_rows_that_is_none_is_code_2(packed, capsys, rows) -> None:
    assert ask(str(packed), "score.mean.p", "--rows", rows, capsys=capsys)[0] == 2


def test_rows_are_cut_and_all_of_them_can_be_had(packed, capsys) -> None:
    few = ask(str(packed), "training.calls", "--rows", "2", capsys=capsys)[1]
    everything = ask(str(packed), "training.calls", "--rows", "all", capsys=capsys)[1]

    assert "more (--rows all)" in few
    assert "more (--rows all)" not in everything
    assert len(everything.splitlines()) > len(few.splitlines()) + 10


def test_the_answer_for_a_program_fits_its_schema(packed, old_packed, capsys) -> None:
    for root in (packed, old_packed):
        answer = orjson.loads(ask(str(root), "training.lines", "--format", "json", capsys=capsys)[1])

        assert shape_of("trace").fits(answer)


def test_evidence_of_another_version_is_code_3(packed, tmp_path, capsys) -> None:
    root = Path(shutil.copytree(packed, tmp_path / "run"))
    (root / layout.EVIDENCE).write_bytes(b'{"evidence_version": 7}')

    assert ask(str(root), capsys=capsys)[0] == 3
    with pytest.raises(UnreadableError, match="not the evidence of a packet of this version"):
        open_subject(load(root))


@pytest.mark.parametrize(
    ("name", "head"), [("trainer/checkpoint-4/trainer_state.json", "/log_history"), ("log_history.json", "")]
)
def test_rows_of_the_host_trainers_own_file_are_found_in_it(old_copy, name, head) -> None:
    rows = [orjson.loads(line) for line in (old_copy / layout.TRAINER_LOG).read_bytes().splitlines()]
    (old_copy / layout.TRAINER_LOG).unlink()
    (old_copy / name).parent.mkdir(parents=True, exist_ok=True)
    record = {"global_step": 4, "max_steps": 4, "log_history": rows} if head else rows
    (old_copy / name).write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2))
    row = traced(old_copy, "curve.reward.first").numbers[0].rows[0]

    assert (row.file, row.pointer) == (name, f"{head}/0/reward")
    assert f'"reward": {row.value}' in (old_copy / name).read_text().splitlines()[row.line - 1]


@pytest.mark.parametrize("with_packet", [True, False])
@pytest.mark.parametrize(("hidden", "standing"), [(False, "sealed and absent"), (True, "unreadable")])
def test_a_sealed_file_that_is_gone_or_cannot_be_read_is_code_1(
    packed, tmp_path, capsys, with_packet, hidden, standing
) -> None:
    root = Path(shutil.copytree(packed, tmp_path / "run"))
    (root / layout.AFTER).unlink()
    if hidden:
        (root / layout.AFTER).mkdir()
    if not with_packet:
        (root / layout.EVIDENCE).unlink()
    code, out, _ = ask(str(root), "score.mean.after", capsys=capsys)

    assert code == 1
    assert f"{layout.AFTER}  {standing}" in out


def test_an_evaluation_that_was_never_sealed_is_only_said_to_be_absent(run_copy, capsys) -> None:
    (run_copy / layout.AFTER).unlink()
    (run_copy / layout.CHECKSUMS).unlink()
    code, out, _ = ask(str(run_copy), "score.mean.after", capsys=capsys)

    assert code == 0
    assert f"{layout.AFTER}  absent" in out
