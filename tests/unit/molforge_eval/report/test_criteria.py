from __future__ import annotations

import io
import re

import pypdf
import pytest

from molforge_eval.report.page import render_page
from molforge_eval.report.paper import render_paper

CASES = ("improved", "incomplete", "withheld", "no plan")


@pytest.fixture(scope="module")
def printed(evidence_of) -> pypdf.PdfReader:
    return pypdf.PdfReader(io.BytesIO(render_paper(evidence_of("improved"), {}, ())))


def test_the_map_names_the_page_on_which_each_chapter_begins(printed) -> None:
    begins = {
        entry.title: printed.get_destination_page_number(entry) + 1
        for entry in printed.outline
        if not isinstance(entry, list)
    }
    text = re.sub(r"\s+", " ", printed.pages[1].extract_text())
    named = {name: int(page) for name, page in re.findall(r"(Learning curves|Checks and findings) \(p\. (\d+)\)", text)}

    assert named == {name: begins[name] for name in ("Learning curves", "Checks and findings")}
    assert "Showing improvement in rewards" in text
    assert "Reward and training pipeline" in text


@pytest.mark.parametrize("case", CASES)
def test_every_place_that_the_map_names_is_there(evidence_of, case) -> None:
    page = render_page(evidence_of(case), {}).decode()
    table = re.search(r'<table class="criteria">(.*?)</table>', page, re.DOTALL)[1]
    targets = re.findall(r'class="place" href="#([^"]+)"', table)

    assert targets
    assert set(targets) <= set(re.findall(r'\bid="([^"]+)"', page))


def test_every_question_is_answered_somewhere(evidence_of) -> None:
    page = render_page(evidence_of("no plan"), {}).decode()
    table = re.search(r'<table class="criteria">(.*?)</table>', page, re.DOTALL)[1]

    assert "<td></td>" not in table


def test_a_run_of_the_old_layout_is_mapped_to_the_chapters_that_it_has(old_evidence_of) -> None:
    page = render_page(old_evidence_of("sound"), {}).decode()
    table = re.search(r'<table class="criteria">(.*?)</table>', page, re.DOTALL)[1]
    targets = set(re.findall(r'class="place" href="#([^"]+)"', table))

    assert targets <= set(re.findall(r'\bid="([^"]+)"', page))
    assert {"traces", "lacks"} <= targets
    assert "sentinel" not in targets
