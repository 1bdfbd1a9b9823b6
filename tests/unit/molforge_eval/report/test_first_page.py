"""The first page of every kind of run, built as a stranger builds it: what it says, and that it is one sheet."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pikepdf
import pypdf
import pytest
from drawn_once import draw_once
from evidence_cases.building import Corpus
from first_page_states import STATES, make_state

from molforge_eval.pdf_page import read_first_page
from molforge_eval.report.build import PacketOptions, build_packet
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.first_page import compare_words, write_words
from molforge_eval.report.numerals import short_hash
from molforge_eval.report.paper import UNDATED, PaperLimits, print_sheet, write_markup

OUTCOMES = {
    "improved": "Improved",
    "no change": "No change shown",
    "regressed": "Regressed",
    "inconclusive": "Inconclusive",
    "evaluation missing": "Incomplete",
    "task failed": "Incomplete",
    "no interval": "Inconclusive",
    "version 0": "Inconclusive",
    "error findings": "Withheld",
}
TITLE_POINTS = 18.3
"""Size of the title where nothing had to be set tighter."""
_HASH = re.compile(r"\b[0-9a-f]{8}…[0-9a-f]{4}\b")


class Outline(HTMLParser):
    """The words of the first page, a line for each block, under the class of what holds them."""

    BLOCKS = frozenset({"p", "h1", "h2", "li", "tr", "figcaption", "div", "section", "header", "figure"})

    def __init__(self) -> None:
        super().__init__()
        self.is_inside, self.lines, self.held = False, [], ""

    def handle_starttag(self, tag, attrs) -> None:
        given = dict(attrs)
        if tag == "main":
            self.is_inside = True
        elif tag in self.BLOCKS:
            self._end_line()
            if self.is_inside and tag in {"div", "section", "header", "figure"}:
                self.lines.append(f"[{given.get('class') or tag}]")
        elif tag in {"td", "th"}:
            self.held += " | "
        elif tag == "img":
            self.held += f"(picture: {given['alt']})"

    def handle_endtag(self, tag) -> None:
        if tag in self.BLOCKS:
            self._end_line()
        self.is_inside = self.is_inside and tag != "main"

    def handle_data(self, data) -> None:
        self.held += data if self.is_inside else ""

    def _end_line(self) -> None:
        text = " ".join(self.held.split())
        self.lines += [f"  {_HASH.sub('(hash)', text)}"] if text and self.is_inside else []
        self.held = ""


@pytest.fixture(scope="module")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Evidence, dict]]:
    folder = tmp_path_factory.mktemp("states")
    corpus = Corpus(folder / "corpus")
    made: dict[str, tuple[Evidence, dict]] = {}

    def make(state: str) -> tuple[Evidence, dict]:
        if state not in made:
            run = make_state(state, corpus, folder / state.replace(" ", "-"))
            evidence = build_packet(run, options=PacketOptions(html=False, pdf=False, pack=False)).evidence
            made[state] = evidence, draw_once(evidence)
        return made[state]

    return make


@pytest.fixture(scope="module")
def first_page_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("templates")
    (folder / "sections").mkdir()
    for name in ("all", "old_all"):
        (folder / "sections" / f"{name}.html.j2").write_text("")
    return folder


def printed_words(data: bytes) -> str:
    with pikepdf.open(io.BytesIO(data)) as pdf:
        words = read_first_page(pdf)

    assert words
    return words


def test_every_state_is_tried() -> None:
    assert set(OUTCOMES) == set(STATES)


@pytest.mark.parametrize("state", STATES)
def test_the_first_page_reads_right(page_of, state, snapshot) -> None:
    reader = Outline()
    reader.feed(write_markup(*page_of(state)).markup)

    assert "\n".join(reader.lines) == snapshot


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("size", ["A4", "letter"])
def test_the_first_page_is_one_sheet_in_its_full_size(page_of, state, size, first_page_only, press_in_use) -> None:
    sheet = write_markup(*page_of(state), size=size, templates=first_page_only)
    data = print_sheet(sheet, (), UNDATED, PaperLimits())
    (page,) = pypdf.PdfReader(io.BytesIO(data)).pages
    text = page.extract_text()
    sizes: set[float] = set()
    page.extract_text(visitor_text=lambda _text, scale, _matrix, _font, size: sizes.add(round(scale[0] * size, 1)))

    assert OUTCOMES[state] in text
    assert "Root hash" in text
    assert list(compare_words(printed_words(data), page_of(state)[0], logs_left_out=False)) == []
    assert TITLE_POINTS in sizes


def test_a_word_that_is_changed_left_out_or_put_in_is_named_with_what_belongs_there(page_of) -> None:
    evidence, _ = page_of("no change")
    words = write_words(evidence, logs_left_out=False)
    foot = f"Run{evidence.identity.run_id}·root{short_hash(evidence.identity.root_sha256)}Page1of3"

    def faults(text: str) -> list[str]:
        return list(compare_words(text, evidence, logs_left_out=False))

    assert faults(f"{words}0.00.09→0.09beforeceiling•1.{foot}") == []
    assert "“" in faults(f"{words.replace('nochangeshown', 'improved', 1)}{foot}")[0]
    assert "nochangeshown" in faults(f"{words.replace('nochangeshown', 'improved', 1)}{foot}")[0]
    assert len(faults(f"{words[:-1]}{foot}")) == 1
    assert "approved" in faults(f"approved{words}{foot}")[0]
    assert "approved" in faults(f"{words}approved{foot}")[0]
    assert "approved" in faults(f"{words}{foot}approved")[0]
    assert "0.0" in faults(f"{words}0.0")[0]


def test_labels_that_match_in_many_ways_take_no_time(page_of) -> None:
    evidence, _ = page_of("no change")
    tasks = tuple(task.model_copy(update={"label": "a" * (place + 1)}) for place, task in enumerate(evidence.tasks))
    changed = evidence.model_copy(update={"tasks": tasks})
    words = write_words(changed, logs_left_out=False)

    assert len(list(compare_words(f"{words}{'a' * 50_000}b", changed, logs_left_out=False))) == 1
