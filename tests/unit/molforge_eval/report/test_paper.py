from __future__ import annotations

import io
import itertools
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pdfua
import pikepdf
import pypdf
import pytest
from drawn_once import draw_once

from molforge_env.errors import MissingDependencyError
from molforge_eval.report import paper
from molforge_eval.report.paper import UNDATED, PaperError, PaperLimits, print_sheet, render_paper, write_markup

CREATED = "2026-01-02T03:04:05Z"


@pytest.fixture(scope="module")
def evidence(evidence_of):
    return evidence_of("improved")


@pytest.fixture(scope="module")
def figures(evidence):
    return draw_once(evidence)


@pytest.fixture(scope="module")
def printed(whole_paper) -> bytes:
    return whole_paper


@pytest.fixture(scope="module")
def pages(printed) -> list[str]:
    return [page.extract_text() for page in pypdf.PdfReader(io.BytesIO(printed)).pages]


def test_the_first_page_is_one_sheet_and_the_results_begin_on_the_second(pages) -> None:
    assert "Improved" in pages[0]
    assert "Root hash" in pages[0]
    assert "Results per task" in pages[1]


def test_every_sheet_says_which_run_and_which_page_of_how_many(pages) -> None:
    for number, text in enumerate(pages, start=1):
        assert "Run run-0123456789ab" in text
        assert f"Page {number} of {len(pages)}" in text


def test_the_paper_is_tagged_and_says_its_language_its_title_and_its_kind(printed, evidence) -> None:
    with pikepdf.open(io.BytesIO(printed)) as pdf, pdf.open_metadata() as words:
        assert pdf.Root.MarkInfo.Marked
        assert pdf.Root.Lang == "en"
        assert pdf.Root.ViewerPreferences.DisplayDocTitle
        assert (words["pdfaid:part"], words["pdfaid:conformance"]) == ("3", "A")
        assert words["pdfuaid:part"] == "1"
        assert words["dc:title"].startswith(evidence.identity.title)
        assert words["xmp:CreateDate"] == CREATED


def test_every_chapter_is_a_bookmark(printed) -> None:
    titles = [entry.title for entry in pypdf.PdfReader(io.BytesIO(printed)).outline if not isinstance(entry, list)]

    assert titles[:2] == ["Where each criterion is answered", "Results per task and seed"]
    assert {"Learning curves", "Episodes to read", "Checks and findings"} <= set(titles)


def test_every_picture_has_a_text_that_stands_for_it(printed, evidence) -> None:
    with pikepdf.open(io.BytesIO(printed)) as pdf:
        figures = [
            element
            for element in pdf.objects
            if isinstance(element, pikepdf.Dictionary) and element.get("/S") == pikepdf.Name.Figure
        ]

        assert len(figures) >= 10
        assert all(str(figure.get("/Alt", "")) for figure in figures)
        assert any(evidence.number("score.mean.before").text in str(figure.Alt) for figure in figures)


def test_every_header_of_a_table_says_what_it_heads(printed) -> None:
    with pikepdf.open(io.BytesIO(printed)) as pdf:
        parts = [entry for entry in pdf.objects if isinstance(entry, pikepdf.Dictionary) and "/S" in entry]
        heads = [part for part in parts if part.S == pikepdf.Name.TH]
        scopes = {(str(head.P.P.S), str(head.A.get("/Scope"))) for head in heads}

    assert len(heads) > 50
    assert scopes == {("/THead", "/Column"), ("/TBody", "/Row")}


def headings(part) -> Iterator[int]:
    """Levels of the headings below an element, in the order in which they are read."""
    if isinstance(part, pikepdf.Array):
        for kid in part:
            yield from headings(kid)
    elif isinstance(part, pikepdf.Dictionary):
        kind = str(part.get("/S", ""))
        yield from [int(kind[2:])] if kind[1:2] == "H" and kind[2:].isdecimal() else headings(part.get("/K"))


def test_headings_go_down_one_level_at_a_time(printed) -> None:
    with pikepdf.open(io.BytesIO(printed)) as pdf:
        levels = list(headings(pdf.Root.StructTreeRoot.K))

    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(later <= earlier + 1 for earlier, later in itertools.pairwise(levels))


def test_the_links_lead_to_places_of_the_document_and_say_so(printed) -> None:
    with pikepdf.open(io.BytesIO(printed)) as pdf:
        places = {str(name) for name in list(pdf.Root.Names.Dests.Names)[::2]}
        links = [note for page in pdf.pages for note in page.obj.get("/Annots", ())]

        assert len(links) > 20
        assert {str(link.Subtype) for link in links} == {"/Link"}
        assert {str(link.Dest) for link in links} <= places
        assert all(str(link.Contents) for link in links)


def test_attachments_are_listed_by_name_as_a_reader_searches_them(printed, enclosures) -> None:
    with pikepdf.open(io.BytesIO(printed)) as pdf:
        names = [str(name) for name in list(pdf.Root.Names.EmbeddedFiles.Names)[::2]]

    assert names == sorted(enclosure.name for enclosure in enclosures)


def test_every_face_is_embedded(printed) -> None:
    with pikepdf.open(io.BytesIO(printed)) as pdf:
        faces = [font for font in pdf.objects if isinstance(font, pikepdf.Dictionary) and "/FontFile2" in font]
        names = {str(font.FontName).split("+")[-1] for font in faces}

    assert {"Inter", "Inter-Bold", "JetBrains-Mono"} <= names


def test_what_is_enclosed_comes_out_as_it_went_in_with_a_fixed_date(printed, enclosures) -> None:
    with pikepdf.open(io.BytesIO(printed)) as pdf:
        assert {name: pdf.attachments[name].get_file().read_bytes() for name in pdf.attachments} == {
            enclosure.name: enclosure.data for enclosure in enclosures
        }
        assert {pdf.attachments[name].get_file().creation_date.isoformat() for name in pdf.attachments} == {
            "2026-01-02T03:04:05+00:00"
        }
        assert len(pdf.Root.AF) == len(enclosures)


def only_the_first_page(folder: Path, rest: str = "") -> Path:
    """Templates whose other chapters are a text of the test's own."""
    (folder / "sections").mkdir()
    (folder / "sections" / "all.html.j2").write_text(rest)
    return folder


def test_printing_twice_gives_the_same_bytes(evidence, figures, enclosures, tmp_path) -> None:
    # A build prints whole papers twice in its own tests.
    templates = only_the_first_page(tmp_path, '{% include "sections/results.html.j2" %}')
    sheet = write_markup(evidence, figures, created=CREATED, templates=templates)
    first, second = (print_sheet(sheet, enclosures, CREATED, PaperLimits()) for _ in range(2))

    assert first == second


def test_a_letter_sheet_is_a_letter_sheet(evidence, figures, tmp_path, press_in_use) -> None:
    sheet = write_markup(evidence, figures, size="letter", templates=only_the_first_page(tmp_path))
    data = print_sheet(sheet, (), UNDATED, PaperLimits())

    assert [float(side) for side in pypdf.PdfReader(io.BytesIO(data)).pages[0].mediabox[2:]] == [612.0, 792.0]


def test_the_document_names_only_what_travels_with_it(evidence, figures) -> None:
    sheet = write_markup(evidence, figures)
    named = set(re.findall(r'src="([^"]+)"', sheet.markup)) | set(re.findall(r"url\(([^)]+)\)", sheet.style))

    assert named == set(sheet.shelf)
    assert all(address.startswith("memory:") for address in named)


def test_no_address_is_read_even_when_a_template_names_one(evidence, figures, tmp_path, press_in_use) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret of the machine")
    naming = (
        f'<link rel="attachment" href="{secret.as_uri()}"><img src="{secret.as_uri()}" alt="x">'
        '<img src="http://127.0.0.1:9/x" alt="x"><img src="data:text/plain,hello" alt="x"><p id="glossary">words</p>'
    )
    sheet = write_markup(evidence, figures, templates=only_the_first_page(tmp_path, naming))
    data = print_sheet(sheet, (), UNDATED, PaperLimits())

    with pikepdf.open(io.BytesIO(data)) as pdf:
        assert list(pdf.attachments) == []
    assert b"the secret" not in data


def test_a_child_that_needs_too_much_memory_is_refused_with_three_lines(evidence, figures) -> None:
    with pytest.raises(PaperError) as caught:
        render_paper(evidence, figures, (), limits=PaperLimits(memory_bytes=2**26))

    assert len(str(caught.value).splitlines()) == 3
    assert "judge_packet.html" in caught.value.mend


def test_a_child_that_takes_too_long_is_ended(evidence, figures, tmp_path) -> None:
    rows = "<tr>" + "<td>wide</td>" * 40 + "</tr>"
    templates = only_the_first_page(tmp_path, f'<table id="glossary" style="table-layout: auto">{rows * 4_000}</table>')
    sheet = write_markup(evidence, figures, templates=templates)

    with pytest.raises(PaperError, match="PDF"):
        print_sheet(sheet, (), UNDATED, PaperLimits(seconds=3))


def test_a_child_that_is_ended_leaves_nothing_behind(evidence, figures, tmp_path, monkeypatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    # A stand-in that puts something down as the library does, and never ends.
    (tmp_path / "weasyprint.py").write_text("import tempfile\ntempfile.mkdtemp()\nwhile True: pass\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)

    with pytest.raises(PaperError, match="PDF"):
        render_paper(evidence, figures, (), limits=PaperLimits(seconds=2))
    assert list(folder.iterdir()) == []


def test_the_child_ends_with_the_process_that_was_killed(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    # A stand-in that never ends, in place of the library.
    (tmp_path / "weasyprint.py").write_text(
        f"import os\nopen({str(tmp_path / 'child')!r}, 'w').write(str(os.getpid()))\nwhile True: pass\n"
    )
    (tmp_path / "press").mkdir()
    (tmp_path / "press" / "order.json").write_text('{"memory_bytes": 4000000000, "seconds": 60}')
    program = (
        "import subprocess, sys; "
        f"subprocess.run([sys.executable, '-P', '-m', 'molforge_eval.report.paper_press', {str(tmp_path / 'press')!r}])"
    )
    parent = subprocess.Popen([sys.executable, "-c", program])
    child = _number_in(tmp_path / "child")
    parent.kill()
    parent.wait()

    assert _is_gone(child)


def _number_in(file: Path) -> int:
    end = time.monotonic() + 60
    while not (file.is_file() and file.read_text()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return int(file.read_text())


def _is_gone(process: int) -> bool:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        state = Path(f"/proc/{process}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


def test_without_pango_the_message_names_the_packages(evidence, figures, tmp_path, monkeypatch) -> None:
    # A stand-in that fails at import as the library does on a machine without Pango.
    (tmp_path / "weasyprint.py").write_text(
        "raise OSError(\"cannot load library 'libgobject-2.0-0': no such file\\nAdditionally, nothing\")\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    with pytest.raises(MissingDependencyError, match="libgobject") as caught:
        render_paper(evidence, figures, ())
    assert paper.APT_LINE in caught.value.mend


def test_without_weasyprint_the_message_names_the_package(evidence, figures, tmp_path, monkeypatch) -> None:
    # A stand-in that fails at import as an absent package does.
    (tmp_path / "weasyprint.py").write_text("raise ModuleNotFoundError(\"No module named 'weasyprint'\")\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    with pytest.raises(MissingDependencyError, match="WeasyPrint") as caught:
        render_paper(evidence, figures, ())
    assert "pip install" in caught.value.mend


def test_no_module_of_the_working_folder_is_imported(evidence, figures, tmp_path, monkeypatch) -> None:
    for name in ("orjson", "weasyprint", "resource"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    sheet = write_markup(evidence, figures, templates=only_the_first_page(tmp_path))

    assert print_sheet(sheet, (), UNDATED, PaperLimits()).startswith(b"%PDF-1.7")
    assert not (tmp_path / "executed").exists()


def test_a_checker_that_is_not_ours_finds_nothing_against_pdf_ua(printed, tmp_path) -> None:
    (tmp_path / "packet.pdf").write_bytes(printed)
    report = pdfua.validate(str(tmp_path / "packet.pdf"))

    assert [(found.rule_id, found.message) for found in report.findings] == []
    # Its one rule about the order of headings stops by itself on page numbers of the tree of tags.
    assert {outcome.rule_id for outcome in report.skipped} <= {"UA-14-001"}
