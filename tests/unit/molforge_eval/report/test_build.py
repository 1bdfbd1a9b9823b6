from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from random import Random
from types import SimpleNamespace

import orjson
import pytest
from evidence_builder import edit_json, edit_line

from molforge_env.errors import UnreadableError, UsageError
from molforge_eval import layout
from molforge_eval.replay import verify
from molforge_eval.report.build import PacketOptions, _compress, _is_far_too_large, build_packet
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.paper import PaperLimits
from molforge_eval.run_files import list_run
from molforge_eval.sealing import seal_run


@pytest.fixture(scope="module")
def packet(built_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packet") / "run"
    shutil.copytree(built_run, folder)
    stages: list[str] = []
    played: list[tuple[int, int]] = []
    made = build_packet(folder, on_stage=stages.append, on_episodes=lambda *counts: played.append(counts))
    return made, stages, played


def test_a_sound_run_reaches_e3_and_the_packet_says_so(packet) -> None:
    evidence = packet[0].evidence

    assert evidence.level.level == "E3"
    assert evidence.number("check.episodes_differing").value == 0
    assert evidence.number("findings.error").value == 0


def test_evidence_page_and_paper_stand_in_the_run_and_nothing_half_written(packet) -> None:
    folder = packet[0].evidence_file.parent

    assert {entry.name for entry in folder.iterdir() if entry.is_file()} >= set(layout.PACKET_FILES)
    assert [path.name for path in folder.rglob(".*")] == []


def test_the_written_evidence_is_the_model(packet) -> None:
    made = packet[0]

    assert Evidence.model_validate_json(made.evidence_file.read_bytes()) == made.evidence


def test_the_archive_beside_the_run_holds_the_packet(packet) -> None:
    import zipfile

    made = packet[0]

    assert made.archive == made.evidence_file.parent.with_name("run.zip")
    with zipfile.ZipFile(made.archive) as archive:
        assert {f"run/{name}" for name in layout.PACKET_FILES} <= set(archive.namelist())


@pytest.mark.parametrize("inside", [False, True])
def test_the_archive_is_named_as_the_run_was(run_copy, monkeypatch, inside) -> None:
    monkeypatch.chdir(run_copy if inside else run_copy.parent)
    options = PacketOptions(html=False, pdf=False, replay=False)
    made = build_packet(Path() if inside else Path(run_copy.name), options=options)

    assert str(made.archive) == f"{'../' if inside else ''}{run_copy.name}.zip"
    assert made.archive.is_file()


def test_the_caller_is_told_of_every_stage_and_every_episode(packet) -> None:
    _, stages, played = packet

    assert stages == ["read", "play", "judge", "draw", "page", "paper", "write", "pack"]
    assert played[-1][0] == played[-1][1] > 0


def test_building_again_gives_the_same_bytes(packet, built_run, tmp_path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(built_run, folder)
    again = build_packet(folder)
    for first, second in zip(packet[0][1:5], again[1:5], strict=True):
        assert first.read_bytes() == second.read_bytes()
    once_more = build_packet(folder, options=PacketOptions(pdf=False, replay=True, pack=False))

    assert once_more.html.read_bytes() == again.html.read_bytes()


def test_the_packet_is_verified_from_its_attachments_alone(packet, tmp_path, monkeypatch) -> None:
    made = packet[0]
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    result = verify(made.pdf, workers=1)
    less = ["PACKET_CARRIES_LESS"]

    assert result.level == "E3"
    assert [item.code for item in result.findings] == less
    assert result.counts["episodes_differing"] == 0
    sealed = orjson.loads((made.evidence_file.parent / layout.CHECKSUMS).read_bytes())
    assert result.root_sha256 == sealed["root_sha256"]
    assert made.pdf.stat().st_size < 5_000_000
    again = build_packet(made.pdf, out=tmp_path / "again", options=PacketOptions(html=False, pdf=False))

    assert [item.code for item in again.evidence.findings] == less
    assert again.evidence.identity.root_sha256 == result.root_sha256
    assert again.evidence.verdict == made.evidence.verdict
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_notebook_shows_the_verdict_and_the_files(packet) -> None:
    shown = packet[0]._repr_html_()

    assert packet[0].evidence.verdict.outcome in shown
    assert "judge_packet.pdf" in shown


def test_a_forged_score_withholds_the_verdict_and_the_packet_is_still_written(run_copy) -> None:
    lines = [orjson.loads(line) for line in (run_copy / layout.ROLLOUTS).read_bytes().splitlines()]
    last = next(number for number, line in enumerate(lines, start=1) if line["ended_by"] == "submit")
    edit_line(run_copy, last, episode_score=0.99)
    made = build_packet(run_copy, options=PacketOptions(pdf=False, pack=False))

    assert made.evidence.verdict.outcome == "withheld"
    assert "Withheld" in made.html.read_text()
    assert made.pdf is made.archive is None


def test_a_paper_that_cannot_be_made_leaves_the_page_and_says_why(small_run) -> None:
    (small_run / layout.PACKET_PDF).write_bytes(b"an older paper")
    options = PacketOptions(paper_limits=PaperLimits(memory_bytes=2**26), pack=False, replay=False)
    made = build_packet(small_run, options=options)

    assert made.html.is_file()
    assert made.pdf is None
    assert "PDF" in str(made.paper_fault)
    assert not (small_run / layout.PACKET_PDF).exists()


def test_an_archive_is_read_and_its_packet_goes_where_it_is_told(packet, tmp_path) -> None:
    options = PacketOptions(pdf=False, replay=False)
    made = build_packet(packet[0].archive, out=tmp_path / "out", options=options)

    assert made.html == tmp_path / "out" / layout.PACKET_HTML
    assert made.evidence.level.level == "E2"
    with pytest.raises(UsageError, match="is a file"):
        build_packet(packet[0].archive, options=options)


def test_a_folder_that_is_no_run_is_unreadable_and_stays_empty(tmp_path) -> None:
    with pytest.raises(UnreadableError):
        build_packet(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_run_of_the_old_layout_gets_a_packet_that_says_what_is_missing(small_run) -> None:
    made = build_packet(small_run, options=PacketOptions(pdf=False, pack=False))

    assert made.evidence.verdict.outcome == "incomplete"
    assert made.evidence.identity.run_format == 0
    assert "FORMAT_OLD" in made.html.read_text()


def test_a_link_in_the_place_of_a_packet_file_is_replaced_and_not_followed(small_run, tmp_path) -> None:
    elsewhere = tmp_path / "elsewhere.html"
    elsewhere.write_text("untouched")
    (small_run / layout.PACKET_HTML).symlink_to(elsewhere)
    build_packet(small_run, options=PacketOptions(pdf=False, pack=False, replay=False))

    assert elsewhere.read_text() == "untouched"
    assert not (small_run / layout.PACKET_HTML).is_symlink()


def test_an_older_packet_of_another_state_leaves_no_trace_in_the_new_one(packet, run_copy) -> None:
    edit_json(run_copy, layout.MANIFEST, lambda manifest: manifest.update(run_name="an older state"))
    seal_run(run_copy)
    build_packet(run_copy, options=PacketOptions(pdf=False, replay=False, pack=False))
    edit_json(run_copy, layout.MANIFEST, lambda manifest: manifest.update(run_name="built"))
    seal_run(run_copy)
    made = build_packet(run_copy, options=PacketOptions(html=False, pdf=False, pack=False))

    assert made.evidence == packet[0].evidence


def test_a_place_that_cannot_be_written_is_named_in_three_lines(small_run, tmp_path) -> None:
    (tmp_path / "out" / layout.EVIDENCE).mkdir(parents=True)
    (tmp_path / "out" / layout.EVIDENCE / "in the way").write_text("x")

    with pytest.raises(UsageError, match="cannot be written") as caught:
        build_packet(small_run, out=tmp_path / "out", options=PacketOptions(pdf=False, replay=False))
    assert "--out" in caught.value.mend
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == [layout.EVIDENCE]


def test_a_page_that_is_not_asked_for_does_not_stay_from_an_older_packet(packet, tmp_path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(packet[0].evidence_file.parent, folder)
    made = build_packet(folder, options=PacketOptions(html=False, pdf=False, replay=False, pack=False))

    assert made.html is None
    assert made.pdf is None
    assert not (folder / layout.PACKET_HTML).exists()
    assert not (folder / layout.PACKET_PDF).exists()


def test_a_folder_inside_the_run_is_refused_and_the_run_by_another_name_is_the_run(run_copy, tmp_path) -> None:
    options = PacketOptions(html=False, pdf=False, replay=False)
    with pytest.raises(UsageError, match="would stand in the run"):
        build_packet(run_copy, out=run_copy / "logs", options=options)
    (tmp_path / "link").symlink_to(run_copy)
    made = build_packet(run_copy, out=tmp_path / "link", options=options)

    assert made.evidence_file == run_copy / layout.EVIDENCE
    assert made.archive is not None


def test_a_disk_without_room_for_the_archive_is_unreadable_and_the_packet_stands(run_copy) -> None:
    program = """
import resource, sys
from molforge_eval.report.build import PacketOptions, build_packet
options = {"html": False, "pdf": False, "replay": False}
made = build_packet(sys.argv[1], options=PacketOptions(pack=False, **options))
most = made.evidence_file.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
build_packet(sys.argv[1], options=PacketOptions(**options))
"""
    done = subprocess.run([sys.executable, "-c", program, run_copy], check=False, capture_output=True, text=True)

    assert "UnreadableError: the archive cannot be written: File too large" in done.stderr
    assert (run_copy / layout.EVIDENCE).is_file()
    assert [path.name for path in run_copy.parent.iterdir()] == [run_copy.name]


@pytest.mark.parametrize("stage", ["judge", "page"])
def test_a_run_that_changes_while_its_packet_is_made_gets_none(small_run, stage) -> None:
    (small_run / layout.EVIDENCE).write_bytes(b"older")

    def change(here: str) -> None:
        (small_run / layout.PACKET_HTML).write_bytes(here.encode())
        if here == stage:
            edit_json(small_run, layout.SUMMARY, lambda value: value.update(note="later"))

    with pytest.raises(UnreadableError, match=f"the run changed while it was read: {layout.SUMMARY}"):
        build_packet(small_run, options=PacketOptions(pdf=False, replay=False), on_stage=change)
    assert (small_run / layout.EVIDENCE).read_bytes() == b"older"


@pytest.mark.parametrize(("piece", "fits"), [(bytes(2**20), True), (Random(3).randbytes(2**20), False)])
def test_a_long_log_that_stays_out_is_known_by_samples(tmp_path, piece, fits) -> None:
    (tmp_path / "log").write_bytes(piece * 33)
    run = SimpleNamespace(files=list_run(tmp_path))

    assert _is_far_too_large(run, "log", 10 * 2**20) is not fits
    assert (_compress(run, "log", at_most=10 * 2**20) is not None) is fits
