"""No numeral of a page or of a paper stands without saying where it comes from."""

from __future__ import annotations

import io
import re

import pypdf
import pytest
from drawn_once import draw_once
from numeral_walk import NUMERAL, Stray, pieces_of, strays

from molforge_eval.report.evidence import Evidence
from molforge_eval.report.page import render_page
from molforge_eval.report.paper import render_paper, write_markup

CASES = ("improved", "no change shown", "inconclusive", "incomplete", "withheld", "no plan", "regenerated")
OLD_CASES = ("sound", "after skipped", "all errors", "other scenarios", "six metrics", "huge scores", "hostile")
CREATED = "some day"


@pytest.fixture(scope="module")
def drawn(evidence_of, old_evidence_of):
    made: dict[str, tuple[Evidence, dict]] = {}

    def draw(case: str) -> tuple[Evidence, dict]:
        if case not in made:
            evidence = (old_evidence_of if case in OLD_CASES else evidence_of)(case)
            made[case] = evidence, draw_once(evidence)
        return made[case]

    return draw


@pytest.mark.parametrize("case", [*CASES, *OLD_CASES])
def test_every_numeral_of_a_page_has_its_origin(drawn, case) -> None:
    evidence, figures = drawn(case)

    assert strays(render_page(evidence, figures).decode(), evidence) == []


@pytest.mark.parametrize("case", [*CASES, *OLD_CASES])
def test_every_numeral_of_a_paper_has_its_origin(drawn, case) -> None:
    evidence, figures = drawn(case)
    sheet = write_markup(evidence, figures, created=CREATED)
    pictures = "".join(data.decode() for name, data in sheet.shelf.items() if name.endswith(".svg"))

    assert strays(sheet.markup + pictures, evidence) == []


@pytest.mark.parametrize("case", ["improved", "sound"])
def test_a_printed_paper_adds_no_numeral_but_those_of_lists_and_pages(
    drawn, case, press_in_use, request: pytest.FixtureRequest
) -> None:
    evidence, figures = drawn(case)
    data = request.getfixturevalue("whole_paper") if case == "improved" else render_paper(evidence, figures, ())
    sheet = write_markup(evidence, figures, created=CREATED)
    pictures = "".join(data.decode() for name, data in sheet.shelf.items() if name.endswith(".svg"))
    written = "\n".join(piece.text for piece in pieces_of(sheet.markup + pictures))
    pages = [page.extract_text() for page in pypdf.PdfReader(io.BytesIO(data)).pages]
    added = {
        (number, numeral)
        for number, text in enumerate(pages, start=1)
        for numeral in NUMERAL.findall(re.sub(rf"\b{number} / {len(pages)}\b|^[0-9]\.", "", text, flags=re.MULTILINE))
        if numeral not in written
    }

    assert added == set()


def test_a_numeral_of_ones_own_is_found(drawn, tmp_path) -> None:
    evidence, figures = drawn("improved")
    (tmp_path / "sections").mkdir()
    said = '<p>It is 0.31415 better, over <b>16</b> seeds.</p><svg><text>0.2718</text></svg><img alt="0.1618">'
    (tmp_path / "sections" / "results.html.j2").write_text(said)
    found = strays(render_page(evidence, figures, templates=tmp_path).decode(), evidence)

    assert [stray.numeral for stray in found if stray.numeral.startswith(("0.31", "0.27", "0.16", "16"))] == [
        "0.31415",
        "16",
        "0.2718",
        "0.1618",
    ]


def test_an_element_that_carries_an_id_says_what_the_evidence_says(drawn, tmp_path) -> None:
    evidence, figures = drawn("improved")
    (tmp_path / "sections").mkdir()
    (tmp_path / "sections" / "results.html.j2").write_text('<b data-n="score.mean.after">0.99</b>')

    assert Stray("0.99", "not what score.mean.after says") in strays(
        render_page(evidence, figures, templates=tmp_path).decode(), evidence
    )


def test_a_number_is_one_stop_of_the_keyboard_and_its_row_leads_back_to_it(drawn) -> None:
    evidence, figures = drawn("improved")
    page = render_page(evidence, figures).decode()
    links = re.findall(r'<a class="n" data-n="([^"]+)" href="#n-[^"]+"( id="u-[^"]+"| tabindex="-1")>', page)
    first = [number_id for number_id, mark in links if mark != ' tabindex="-1"']

    assert len(first) == len(set(first)) == len({number_id for number_id, _ in links})
    assert len(links) > len(first)
    assert set(re.findall(r'href="#u-([^"]+)"', page)) == set(first)


def test_a_paper_lists_the_numbers_that_it_prints_and_links_both_ways(drawn) -> None:
    evidence, figures = drawn("improved")
    markup = write_markup(evidence, figures, created=CREATED).markup
    placed = set(re.findall(r'href="#n-([^"]+)"', markup))

    alone = {number_id for number_id in placed if not number_id.startswith("seed.")}

    assert set(re.findall(r' id="n-([^"]+)"', markup)) == placed
    assert alone < set(re.findall(r'href="#u-([^"]+)"', markup)) < placed
    assert "<code>seed.*.mean.before</code>" in markup
    assert "<strong>Before, sampled:</strong>" in markup
    assert {"score.mean.difference", "curve.reward.last", "conduct.after.vetoed"} <= placed
