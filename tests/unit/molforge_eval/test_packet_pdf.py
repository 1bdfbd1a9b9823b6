"""Packet PDFs as input: what is attached is a run, and a hostile PDF is findings or three lines."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

import orjson
import pikepdf
import pytest
from old_layout import make_bare_old_run
from packet_builder import attachments_of, packet_of, write_packet

from molforge_env.errors import UnreadableError
from molforge_eval import layout
from molforge_eval.limits import Limits
from molforge_eval.packet_pdf import is_pdf, unpack_packet
from molforge_eval.replay import verify
from molforge_eval.report.build import PacketOptions, build_packet
from molforge_eval.run_directory import load
from molforge_eval.validate import validate

CARRIED = "PACKET_CARRIES_LESS"


@pytest.fixture(autouse=True)
def private_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, so that a test can see what is left in it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def first_page_only(tmp_path: Path) -> Path:
    """Templates that print the first page and nothing else, which is faster."""
    folder = tmp_path / "templates"
    (folder / "sections").mkdir(parents=True)
    (folder / "sections" / "all.html.j2").write_text("")
    return folder


def codes_of(path: Path, limits: Limits | None = None) -> set[str]:
    return {item.code for item in validate(path, limits or Limits()).findings}


def replaced(root: Path, name: str, data: bytes) -> list[tuple[str, bytes]]:
    return [(held, data if held == name else before) for held, before in attachments_of(root)]


def why(path: Path, limits: Limits | None = None) -> str:
    with pytest.raises(UnreadableError) as caught:
        load(path, limits or Limits())

    assert len(str(caught.value).splitlines()) == 3
    return caught.value.what


def test_the_packet_of_an_older_run_is_read_as_that_run(run_copy: Path, tmp_path: Path, first_page_only: Path) -> None:
    old = make_bare_old_run(run_copy, tmp_path / "old")
    before = validate(old)
    made = build_packet(old, options=PacketOptions(html=False, pack=False, templates=first_page_only))
    assert made.pdf is not None
    inside, carried = validate(old), validate(made.pdf)

    assert {item.code for item in inside.findings} == {item.code for item in before.findings}
    assert [item for item in carried.findings if item.severity == "error"] == []
    assert (inside.level, carried.level, carried.run_format) == (before.level, before.level, 0)


def test_a_page_that_speaks_of_another_run_than_is_attached_is_found(
    run_copy: Path, tmp_path: Path, first_page_only: Path
) -> None:
    made = build_packet(
        run_copy, out=tmp_path, options=PacketOptions(html=False, replay=False, templates=first_page_only)
    )
    assert made.pdf is not None
    evidence = orjson.loads((tmp_path / layout.EVIDENCE).read_bytes())
    for number in evidence["numbers"]:
        if number["id"] == "score.mean.after":
            number.update(value=0.123456, text="0.1234")
    with pikepdf.open(made.pdf, allow_overwriting_input=True) as pdf:
        pdf.attachments[layout.EVIDENCE] = pikepdf.AttachedFileSpec(
            pdf, orjson.dumps(evidence), filename=layout.EVIDENCE
        )
        pdf.save(made.pdf)
    found = [(item.code, item.what) for item in validate(made.pdf).findings if item.severity == "error"]

    assert [code for code, _ in found] == ["PACKET_PAGE_DIFFERS", "PACKET_NUMBER_DIFFERS"]
    assert "0.1234" in found[0][1]
    assert "0.123456" in found[1][1]


def test_each_attachment_that_was_tampered_with_is_found(run_copy: Path) -> None:
    for name, data in attachments_of(run_copy):
        if name in (layout.EVIDENCE, layout.CHECKSUMS):
            continue
        if name.endswith(".gz"):
            text = gzip.decompress(data)
            spoiled = gzip.compress(text[: text.rindex(b"\n", 0, -1) + 1], mtime=0)
        else:
            spoiled = data.replace(b"1", b"2", 1)
        path = write_packet(run_copy.parent / "p.pdf", replaced(run_copy, name, spoiled))

        assert {"CHECKSUM_DIFFERS", CARRIED} <= codes_of(path), name


def test_a_packet_without_its_logs_speaks_of_the_evaluation_only(
    run_copy: Path, tmp_path: Path, first_page_only: Path
) -> None:
    made = build_packet(
        run_copy, out=tmp_path, options=PacketOptions(html=False, log_bytes=100, templates=first_page_only)
    )
    assert made.pdf is not None
    result = verify(made.pdf, workers=1)

    assert (result.level, result.counts["episodes_replayed"]) == ("E3", 18)
    assert result.level_reason.endswith("E3 for the evaluation only")
    assert "soitshowse3fortheevaluationonly" in (load(made.pdf).first_page.words or "").casefold()
    assert {item.code for item in result.findings} == {CARRIED, "PACKET_LOG_ABSENT"}


def test_a_name_in_the_document_never_becomes_a_path(run_copy: Path, private_folder: Path) -> None:
    names = ["../evidence.json", "/etc/passwd", "logs/openenv_tool_rollouts.jsonl", "C:\\run_manifest.json", "", "a\0b"]
    path = packet_of(run_copy, more=tuple((name, b"{}") for name in names))
    unpacked = unpack_packet(path)
    inside = sorted(entry.relative_to(unpacked.run.root).as_posix() for entry in unpacked.run.root.rglob("*.*"))

    assert inside == sorted(set(layout.ENCLOSURES.values()) - {layout.TRAINER_STATE})
    assert {finding.code for finding in unpacked.run.findings} == {"PACKET_ATTACHMENT_UNKNOWN"}
    assert [entry.name for entry in private_folder.iterdir()] == [unpacked.run.holder.name]


def test_what_is_no_packet_gives_three_lines_and_leaves_nothing_behind(tmp_path: Path, private_folder: Path) -> None:
    empty = write_packet(tmp_path / "empty.pdf", [])
    strange = write_packet(tmp_path / "strange.pdf", [("a.txt", b"1"), ("b.txt", b"2")])
    locked = write_packet(
        tmp_path / "locked.pdf", [("eval_plan.json", b"{}")], encryption=pikepdf.Encryption(owner="o", user="u")
    )
    open_locked = write_packet(
        tmp_path / "half.pdf", [("eval_plan.json", b"{}")], encryption=pikepdf.Encryption(owner="o", user="")
    )
    (tmp_path / "torn.pdf").write_bytes(empty.read_bytes()[:-60])
    (tmp_path / "text.pdf").write_bytes(b"%PDF-1.7\nhello\n")

    assert "nothing is attached" in why(empty)
    assert "none of its 2 attachments" in why(strange)
    assert "encrypted" in why(locked)
    assert "encrypted" in why(open_locked)
    for name in ("torn.pdf", "text.pdf"):
        words = "its head, its table of objects or its end is damaged"
        assert why(tmp_path / name) == f"{name} is no packet that can be read: {words}"
    assert "the limit pdf_bytes is 10" in why(empty, Limits(pdf_bytes=10))
    assert "pdf_objects" in why(empty, Limits(pdf_objects=1))
    assert list(private_folder.iterdir()) == []


def test_an_attachment_that_inflates_is_not_written_out(run_copy: Path) -> None:
    bomb = zlib.compress(bytes(40_000_000), 9)
    path = packet_of(
        run_copy,
        without=("openenv_rl_summary.json",),
        more=(("openenv_rl_summary.json", bomb),),
        streams={"openenv_rl_summary.json": {"/Filter": pikepdf.Name.FlateDecode}},
        compress_streams=False,
        stream_decode_level=pikepdf.StreamDecodeLevel.none,
    )
    found = validate(path).findings

    assert "PACKET_ATTACHMENT_TOO_LARGE" in {item.code for item in found}


@pytest.mark.parametrize(
    "keys",
    [
        {"/Filter": pikepdf.Name.ASCIIHexDecode},
        {"/Filter": pikepdf.Array([pikepdf.Name.FlateDecode, pikepdf.Name.FlateDecode])},
        {"/Filter": pikepdf.Name.FlateDecode},
        {"/F": pikepdf.String("/etc/passwd")},
    ],
)
def test_an_attachment_packed_in_another_way_is_named(run_copy: Path, keys: dict[str, Any]) -> None:
    name = "eval_plan.json"
    path = packet_of(
        run_copy,
        streams={name: keys},
        compress_streams=False,
        stream_decode_level=pikepdf.StreamDecodeLevel.none,
    )

    assert "PACKET_ATTACHMENT_UNREADABLE" in codes_of(path)


def _script(pdf: pikepdf.Pdf) -> None:
    pdf.Root.Names.JavaScript = pikepdf.Dictionary(
        Names=pikepdf.Array([pikepdf.String("x"), pikepdf.Dictionary(S=pikepdf.Name.JavaScript, JS="app.alert(1)")])
    )


def _outside(pdf: pikepdf.Pdf) -> None:
    pdf.Root.Extra = pikepdf.Array([pikepdf.Dictionary(Type=pikepdf.Name.Filespec, F="http://127.0.0.1:9/x")])


def _form(pdf: pikepdf.Pdf) -> None:
    pdf.Root.AcroForm = pikepdf.Dictionary(XFA="<xdp/>")


@pytest.mark.parametrize(
    ("change", "words"),
    [(_script, "action JavaScript"), (_outside, "a file outside"), (_form, "a form with a program")],
)
def test_what_acts_in_a_document_is_named(run_copy: Path, change: Any, words: str) -> None:
    found = validate(packet_of(run_copy, change=change)).findings

    assert [item.severity for item in found if item.code == "PACKET_ACTIVE"] == ["warning"]
    assert any(words in item.what for item in found)


def _picture(pdf: pikepdf.Pdf) -> None:
    image = pdf.make_stream(bytes(3), Type=pikepdf.Name.XObject, Subtype=pikepdf.Name.Image, Width=1, Height=1)
    pdf.pages[0].obj.Resources.XObject = pikepdf.Dictionary(I1=image)


def _note(pdf: pikepdf.Pdf) -> None:
    note = pikepdf.Dictionary(Type=pikepdf.Name.Annot, Subtype=pikepdf.Name.FreeText, Contents="Approved")
    pdf.pages[0].obj.Annots = pikepdf.Array([pdf.make_indirect(note)])


def _drawing(pdf: pikepdf.Pdf) -> None:
    page = pdf.pages[0].obj
    page.Contents = pikepdf.Array([page.Contents, pdf.make_stream(b"1 g 0 0 600 800 re f")])


def _overlay(pdf: pikepdf.Pdf) -> None:
    with pikepdf.new() as other:
        other.add_blank_page(page_size=(600, 800))
        other.pages[0].obj.Contents = other.make_stream(b"1 g 50 700 400 60 re f")
        pdf.pages[0].add_overlay(other.pages[0])


def _broken_notes(pdf: pikepdf.Pdf) -> None:
    pdf.pages[0].obj.Annots = pikepdf.Array([1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_picture, "a picture of points"),
        (_note, "a note of kind FreeText"),
        (_drawing, "a drawing put over it"),
        (_overlay, "a drawing put over it"),
        (_broken_notes, "what cannot be listed"),
    ],
)
def test_what_is_put_over_the_first_page_is_named(run_copy: Path, change: Any, words: str) -> None:
    found = validate(packet_of(run_copy, change=change)).findings
    (what,) = (item.what for item in found if item.code == "PACKET_PAGE_DIFFERS")

    assert words in what


def test_swapped_renamed_and_added_attachments_are_named(run_copy: Path) -> None:
    held = dict(attachments_of(run_copy))
    before, after = held["eval_before_training.json"], held["eval_after_training.json"]
    swapped = {**held, "eval_before_training.json": after, "eval_after_training.json": before}
    renamed = [("eval_final.json" if name == "eval_after_training.json" else name, data) for name, data in held.items()]
    twice = [*held.items(), ("eval_after_training.json", before)]

    def codes(entries: list[tuple[str, bytes]]) -> set[str]:
        return codes_of(write_packet(run_copy.parent / "p.pdf", entries))

    assert {"CHECKSUM_DIFFERS", "EVALUATIONS_SWAPPED"} & codes(list(swapped.items()))
    assert {"PACKET_ATTACHMENT_UNKNOWN", "SEALED_FILE_MISSING"} <= codes(renamed)
    assert "PACKET_ATTACHMENT_REPEATED" in codes(twice)


def test_a_hundred_thousand_objects_are_read_or_refused_in_three_lines(run_copy: Path) -> None:
    def crowd(pdf: pikepdf.Pdf) -> None:
        pdf.Root.Crowd = pikepdf.Array([pdf.make_indirect(pikepdf.Array([number])) for number in range(100_001)])

    path = packet_of(run_copy, change=crowd, object_stream_mode=pikepdf.ObjectStreamMode.generate)

    assert codes_of(path) == {CARRIED}
    assert "the limit pdf_objects, 50000" in why(path, Limits(pdf_objects=50_000))


def test_a_tree_of_attachments_that_bites_its_tail_ends(run_copy: Path) -> None:
    def knot(pdf: pikepdf.Pdf) -> None:
        tree = pdf.make_indirect(pdf.Root.Names.EmbeddedFiles)
        pdf.Root.Names.EmbeddedFiles = tree
        tree.Kids = pikepdf.Array([tree, tree])

    assert codes_of(packet_of(run_copy, change=knot)) == {CARRIED}


def test_limits_beyond_every_clock_and_memory_are_none(tmp_path: Path, private_folder: Path) -> None:
    path = write_packet(tmp_path / "p.pdf", [])
    most = 10**15 - 1

    assert "nothing is attached" in why(path, Limits(pdf_seconds=most, pdf_memory_bytes=most, archive_bytes=most))
    assert list(private_folder.iterdir()) == []


def test_a_reader_that_may_use_no_memory_is_an_end_in_three_lines(tmp_path: Path, private_folder: Path) -> None:
    path = write_packet(tmp_path / "p.pdf", [("eval_plan.json", b"{}")])

    assert "limit on time or memory" in why(path, Limits(pdf_memory_bytes=2**24))
    assert list(private_folder.iterdir()) == []


def test_a_document_is_known_by_its_first_bytes_not_by_its_name(tmp_path: Path) -> None:
    packet = write_packet(tmp_path / "packet.zip", [])
    (tmp_path / "run.pdf").write_bytes(b"PK\x03\x04")

    assert is_pdf(packet)
    assert not is_pdf(tmp_path / "run.pdf")
