from __future__ import annotations

import io
import re
from html import unescape
from html.parser import HTMLParser

import pypdf
import pytest
from drawn_once import draw_once
from old_cases import CASES
from packet_pages import without_scripts

from molforge_eval.report.page import render_page
from molforge_eval.report.paper import UNDATED, PaperLimits, print_sheet, write_markup

GOLDEN = (
    "sound",
    "after missing",
    "both missing",
    "all errors",
    "unequal counts",
    "copies",
    "six metrics",
    "after cut",
)
PRINTED = ("sound", "after missing", "hostile", "before alone")
HOSTILE_CHAPTERS = ("criteria", "old_results", "old_traces", "old_lacks", "old_settings", "files")
DRAWN = {"sound", "after missing", "both missing", "hostile", "logs missing", "before alone", "rollouts alone"}
"""Cases whose charts are drawn; the others are read without them."""


class Text(HTMLParser):
    """The text of a page, by the class of the element around it; style and script left out."""

    def __init__(self, wanted: str | None = None) -> None:
        super().__init__()
        self.wanted, self.depth, self.silent, self.text = wanted, 0, False, ""

    def handle_starttag(self, tag, attrs) -> None:
        self.silent = self.silent or tag in {"style", "script"}
        if self.depth or self.wanted in (dict(attrs).get("class") or "").split():
            self.depth += tag not in {"img", "br", "meta", "path", "circle"}

    def handle_endtag(self, tag) -> None:
        self.silent = self.silent and tag not in {"style", "script"}
        self.depth -= bool(self.depth) and tag not in {"path", "circle"}

    def handle_data(self, data) -> None:
        if (self.depth or self.wanted is None) and not self.silent:
            self.text += data


def words(page: str, name: str | None = None) -> str:
    reader = Text(name)
    reader.feed(page)
    return " ".join(reader.text.split())


@pytest.fixture(scope="module")
def figures_of(old_evidence_of):
    made: dict[str, dict] = {}

    def draw(case: str) -> dict:
        if case not in made:
            made[case] = draw_once(old_evidence_of(case))
        return made[case]

    return draw


@pytest.fixture(scope="module")
def page_of(old_evidence_of, figures_of):
    made: dict[str, str] = {}

    def make(case: str) -> str:
        if case not in made:
            page = render_page(old_evidence_of(case), figures_of(case) if case in DRAWN else {}).decode()
            made[case] = without_scripts(page)
        return made[case]

    return make


@pytest.mark.parametrize("case", GOLDEN)
@pytest.mark.parametrize("part", ["verdict", "level", "tiles", "claims", "columns"])
def test_the_first_page_reads_right(page_of, case, part, snapshot) -> None:
    assert words(page_of(case), part) == snapshot


def test_the_whole_page_of_a_sound_run_reads_right(page_of, snapshot) -> None:
    page = re.sub(r'(?s)<section id="(checks|files|numbers)".*?</section>', "", page_of("sound"))
    lines = re.sub(r"</(p|tr|h1|h2|h3|li|figcaption|title)>", "\n", re.sub(r"(?s)<(style|script)>.*?</\1>", "", page))
    text = unescape(re.sub(r"(?s)<[^>]*>", " ", lines))

    assert "\n".join(line for line in (" ".join(part.split()) for part in text.splitlines()) if line) == snapshot


@pytest.mark.parametrize("case", CASES)
def test_no_word_of_the_machine_stands_where_nothing_is_known(page_of, case) -> None:
    text = words(page_of(case))

    assert not re.search(r"\b(None|nan|inf|undefined|Undefined)\b", text)
    assert "no verdict: ." not in text


@pytest.mark.parametrize("case", CASES)
def test_every_link_leads_somewhere_inside_and_every_id_stands_once(page_of, case) -> None:
    page = page_of(case)
    ids = re.findall(r'\bid="([^"]+)"', page)
    links = re.findall(r'href="([^"]+)"', page)

    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links} <= set(ids)
    assert all(link.startswith("#") for link in links)


@pytest.mark.parametrize("case", ["both missing", "logs missing", "before alone", "rollouts alone"])
def test_what_is_absent_is_said_in_words_and_not_drawn(page_of, figures_of, case) -> None:
    page, figures = page_of(case), figures_of(case)

    assert ("hero" in figures) == (case not in {"both missing", "rollouts alone"})
    assert ("reward" in figures) == (case == "both missing")
    assert "call_reward" not in figures or case in {"both missing", "rollouts alone"}
    assert page.count('class="remark"') >= 1


def test_an_arm_without_a_mean_has_no_mark_in_the_chart(figures_of) -> None:
    with_both, without = (figures_of(case)["hero"].body for case in ("sound", "after missing"))

    assert ">after<" in with_both
    assert ">after<" not in without
    assert ">ceiling<" in without


def test_hostile_text_is_escaped_and_cut(page_of) -> None:
    page = page_of("hostile")

    assert "<img" not in page
    assert "<script" not in page
    assert "&lt;/script&gt;&lt;img src=x" in page
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in page
    assert "{{ 7*7 }}" in page
    assert "W" * 400 not in page


def test_a_lone_surrogate_leaves_a_page_that_can_be_written(page_of) -> None:
    assert "TEXT_SURROGATE" in page_of("surrogate")


@pytest.mark.parametrize("case", PRINTED)
def test_the_paper_has_its_first_page_on_one_sheet(old_evidence_of, figures_of, case, tmp_path, press_in_use) -> None:
    evidence = old_evidence_of(case)
    # Only what a stranger wrote can be of any shape: the other chapters cost most of the time.
    chapters = "".join(f'{{% include "sections/{name}.html.j2" %}}' for name in HOSTILE_CHAPTERS)
    chapter = '<section id="criteria" class="chapter"><h2>Results per task</h2></section>'
    (tmp_path / "sections").mkdir()
    (tmp_path / "sections" / "old_all.html.j2").write_text(chapters if case == "hostile" else chapter)
    sheet = write_markup(evidence, figures_of(case), templates=tmp_path)
    data = print_sheet(sheet, (), UNDATED, PaperLimits())
    sheets = [page.extract_text() for page in pypdf.PdfReader(io.BytesIO(data)).pages]
    word = {"inconclusive": "Inconclusive", "incomplete": "Incomplete", "withheld": "Withheld"}

    assert word[evidence.verdict.outcome] in sheets[0]
    assert "does not record" in sheets[0]
    assert "Root hash" in sheets[0]
    assert "Results per task" in sheets[1]
    assert all(f"Page {number} of {len(sheets)}" in text for number, text in enumerate(sheets, start=1))
    assert not data.count(b"/URI (http")
