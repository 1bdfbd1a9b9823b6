"""One run whose every text is hostile, as HTML and as PDF: nothing runs or is fetched, and nothing is an empty box."""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pikepdf
import pypdf
import pytest
from evidence_builder import edit_json, read_lines, reseal, write_lines

from molforge_eval import layout
from molforge_eval.report.build import Packet, PacketOptions, build_packet

MARKUP = (
    '{{ 7*7 }}</script><img src=x onerror="document.title=\'owned\'"><link rel=attachment href="file:///etc/passwd">'
    '<img src="http://127.0.0.1:9/x"><a href="http://127.0.0.1:9/y">y</a><style>@import "http://127.0.0.1:9/z";</style>'
    "{% raw %}<svg onload=alert(1)><!--"
)
MARKS = (
    "\N{RIGHT-TO-LEFT OVERRIDE}gnp.exe\N{ZERO WIDTH JOINER} \N{GRINNING FACE} \u05e9\u05dc\u05d5\u05dd e"
    + "\u0301" * 90
)
UNBROKEN = "W" * 10_000
TEXTS = (MARKUP, MARKS, UNBROKEN)
METRICS = {"rewards.env": 0.5, "reward[0]": 0.25, "env:reward": 0.125, "a\\b": 1.0, "</script>": 2.0}


class Tags(HTMLParser):
    """Every element with what its attributes say."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs) -> None:
        self.found.append((tag, dict(attrs)))


def spoil(root: Path) -> None:
    """Let every text that a run may hold be one of `TEXTS`."""

    def spoil_evaluation(value: Any) -> None:
        for number, episode in enumerate(value["episodes"]):
            text = TEXTS[number % len(TEXTS)]
            for step in episode["steps"]:
                step["arguments"] = {**step["arguments"], text[:200]: text, "rationale": text}
            for turn in episode["turns"]:
                turn["raw_completion"] = text

    def spoil_manifest(value: Any) -> None:
        value["configuration"].update(base_model=MARKUP, sft_adapter_path=MARKS, run_name=UNBROKEN)
        value.update(run_name=UNBROKEN)

    for path in layout.EVALUATIONS:
        edit_json(root, path, spoil_evaluation)
    edit_json(root, layout.MANIFEST, spoil_manifest)
    rows = read_lines(root, layout.TRAINER_LOG)
    write_lines(root, [{**row, **METRICS} if row.get("type") == "train" else row for row in rows], layout.TRAINER_LOG)
    reseal(root)


@pytest.fixture(scope="module")
def packet(built_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Packet:
    root = Path(shutil.copytree(built_run, tmp_path_factory.mktemp("hostile") / "run"))
    spoil(root)
    return build_packet(root, options=PacketOptions(title=MARKS + MARKUP[:60], replay=False, pack=False))


@pytest.fixture(scope="module")
def pages(packet: Packet) -> list[str]:
    return [page.extract_text() for page in pypdf.PdfReader(packet.pdf).pages]


def test_the_texts_stand_in_the_packet_as_they_were_written(packet: Packet, pages: list[str]) -> None:
    shown = re.sub(r"\s+", "", "".join(pages))

    assert packet.paper_fault is None
    assert "</script><imgsrc=xonerror=" in shown
    assert "{{7*7}}" in shown
    assert "10000characters" in shown


def test_nothing_of_them_is_an_element_of_the_page(packet: Packet) -> None:
    reader = Tags()
    reader.feed(packet.html.read_text(encoding="utf-8"))

    assert [tag for tag, _ in reader.found if tag in {"iframe", "object", "embed", "form", "base"}] == []
    assert [given for _, given in reader.found if any(name.startswith("on") for name in given)] == []
    named = [given[key] or "" for _, given in reader.found for key in ("src", "href") if key in given]
    assert [address for address in named if not address.startswith(("#", "data:font"))] == []


def test_nothing_of_them_is_a_link_an_attachment_or_a_program_of_the_document(packet: Packet) -> None:
    with pikepdf.open(packet.pdf) as pdf:
        kinds = [
            str(entry.get("/S")) for entry in pdf.objects if isinstance(entry, pikepdf.Dictionary) and "/S" in entry
        ]

        assert not {"/URI", "/Launch", "/JavaScript", "/GoToR"} & set(kinds)
        assert set(pdf.attachments) <= set(layout.ENCLOSURES)
    assert b"root:x:0" not in packet.pdf.read_bytes()


def test_what_no_face_draws_is_named_and_no_face_of_the_machine_is_used(packet: Packet, pages: list[str]) -> None:
    shown = re.sub(r"\s+", "", "".join(pages))
    with pikepdf.open(packet.pdf) as pdf:
        faces = {
            str(font.FontName).split("+")[-1]
            for font in pdf.objects
            if isinstance(font, pikepdf.Dictionary) and "/FontName" in font
        }

    assert "[U+1F600grinningface]" in shown
    assert "[U+05E9U+05DCU+05D5U+05DD]" in shown
    assert "\\u202egnp.exe\\u200d" in shown
    assert faces
    assert all(name.startswith(("Inter", "JetBrains")) for name in faces)


def test_the_first_page_is_one_sheet_all_the_same(pages: list[str]) -> None:
    assert "Root hash" in pages[0]
    assert "Results per task" in pages[1]
    assert len(pages) < 40


def test_names_of_metrics_cost_a_chart_no_point(packet: Packet) -> None:
    rows = packet.evidence.number("training.rows").value
    loss = packet.evidence.curve("loss")

    assert loss is not None
    assert rows == len(loss.points)


def test_a_lone_surrogate_is_named_and_the_packet_is_made(run_copy: Path, tmp_path: Path) -> None:
    text = (run_copy / layout.AFTER).read_text()
    (run_copy / layout.AFTER).write_text(text.replace('"raw_completion": "', '"raw_completion": "\\ud800'))
    # The first page and the chapter that quotes what the model wrote.
    (tmp_path / "mine" / "sections").mkdir(parents=True)
    chapters = '{% include "sections/transcripts.html.j2" %}'
    (tmp_path / "mine" / "sections" / "all.html.j2").write_text(chapters)
    options = PacketOptions(html=False, replay=False, pack=False, templates=tmp_path / "mine")
    packet = build_packet(run_copy, options=options)

    assert packet.paper_fault is None
    assert "TEXT_SURROGATE" in {item.code for item in packet.evidence.findings}
    assert "Withheld" in pypdf.PdfReader(packet.pdf).pages[0].extract_text()
