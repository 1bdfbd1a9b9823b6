from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from drawn_once import draw_once
from packet_pages import without_scripts

from molforge_eval.report.figures import draw_figures
from molforge_eval.report.page import paint_by_role, render_page
from molforge_eval.report.theme import colour
from molforge_eval.report.vega_lite import unchecked

CASES = ("improved", "no change shown", "regressed", "inconclusive", "incomplete", "withheld", "copies", "no plan")


class Words(HTMLParser):
    """The text inside elements of one class."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.depth, self.text = name, 0, ""

    def handle_starttag(self, tag, attrs) -> None:
        if self.depth or self.name in (dict(attrs).get("class") or "").split():
            self.depth += tag not in {"img", "br", "meta", "path", "circle"}

    def handle_endtag(self, tag) -> None:
        self.depth -= bool(self.depth) and tag not in {"path", "circle"}

    def handle_data(self, data) -> None:
        if self.depth:
            self.text += data


class Addresses(HTMLParser):
    """Every attribute that a browser might load or follow."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, _tag, attrs) -> None:
        loading = {
            "src",
            "srcset",
            "href",
            "xlink:href",
            "action",
            "formaction",
            "data",
            "poster",
            "background",
            "ping",
        }
        self.found += [value or "" for name, value in attrs if name in loading]


def words(page: str, name: str) -> str:
    reader = Words(name)
    reader.feed(page)
    return " ".join(reader.text.split())


@pytest.fixture(scope="module")
def page_of(evidence_of):
    made: dict[str, str] = {}

    def make(case: str) -> str:
        if case not in made:
            evidence = evidence_of(case)
            made[case] = render_page(evidence, draw_once(evidence)).decode()
        return made[case]

    return make


@pytest.mark.parametrize("case", CASES)
def test_the_verdict_reads_right(page_of, case, snapshot) -> None:
    assert words(page_of(case), "verdict") == snapshot


@pytest.mark.parametrize("case", CASES)
def test_the_tiles_read_right(page_of, case, snapshot) -> None:
    assert words(page_of(case), "tiles") == snapshot


@pytest.mark.parametrize("case", CASES)
def test_the_claims_read_right(page_of, case, snapshot) -> None:
    assert words(page_of(case), "claims") == snapshot


@pytest.mark.parametrize("case", CASES)
def test_every_link_leads_somewhere_inside_and_every_id_stands_once(page_of, case) -> None:
    page = without_scripts(page_of(case))
    ids = re.findall(r'\bid="([^"]+)"', page)
    links = set(re.findall(r'href="([^"]+)"', page))

    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links} <= set(ids)
    assert {"charts", "content"} & set(ids) == {"content"}
    assert all(link.startswith("#") for link in links)


@pytest.mark.parametrize("case", CASES)
def test_the_page_names_no_address_outside(page_of, case) -> None:
    reader = Addresses()
    reader.feed(page_of(case))
    in_style = re.findall(r"url\(([^)]{1,30})", without_scripts(page_of(case)))

    assert {found for found in reader.found if not found.startswith("#")} == set()
    assert {found for found in in_style if not found.startswith(("data:font/woff2;base64,", "#"))} == set()
    assert "@import" not in without_scripts(page_of(case))


@pytest.mark.parametrize("case", ["improved", "no plan"])
def test_the_policy_names_the_hashes_of_its_style_and_its_scripts(page_of, case) -> None:
    page = page_of(case)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1].replace("&#39;", "'")
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        named = re.search(rf"{directive} ([^;]+);", policy)[1].split()
        hashes = [
            base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
            for inside in re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        ]

        assert named == [f"'sha256-{found}'" for found in hashes]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_every_picture_tells_its_numbers_in_words(page_of, evidence_of) -> None:
    page = page_of("improved")
    titles = re.findall(r'<svg class="(?:chart|molecule)[^>]*><title>(.*?)</title>', page)
    evidence = evidence_of("improved")

    assert len(titles) == page.count('<svg class="chart') + page.count('<svg class="molecule')
    assert all(len(title) > 20 for title in titles)
    assert f"before {evidence.number('score.mean.before').text}" in titles[0]


def test_every_printed_number_leads_to_how_it_is_made(page_of, evidence_of) -> None:
    page = page_of("improved")

    assert {f"n-{number.id}" for number in evidence_of("improved").numbers} <= set(re.findall(r'id="([^"]+)"', page))
    assert page.count('href="#n-score.mean.difference"') >= 3


def test_the_same_evidence_gives_the_same_bytes(evidence_of) -> None:
    evidence = evidence_of("improved")
    with unchecked():
        figures, again = draw_figures(evidence), draw_figures(evidence)

    assert render_page(evidence, figures) == render_page(evidence, again)


def test_the_colours_of_a_chart_become_those_of_the_page() -> None:
    assert paint_by_role(f'<path fill="{colour("after")}"/>') == '<path fill="var(--after)"/>'
    assert paint_by_role('<path fill="#123456"/>') == '<path fill="#123456"/>'


def test_the_page_of_a_small_run_is_small(page_of) -> None:
    assert len(page_of("improved").encode()) < 2_500_000


@pytest.mark.parametrize("case", CASES)
def test_a_packet_asks_for_no_more_than_its_commands_give(page_of, case) -> None:
    text = page_of(case)

    assert " --regenerate</code>" not in text
    assert ("Compare the root hash" in text) == (case not in {"withheld", "no plan"})
    assert "1 seeds" not in text
    assert ("must print level E3 and 0 episodes differing" in text) == (case not in {"withheld", "no plan"})


def test_without_any_evaluation_no_tile_counts_episodes(check, plan) -> None:
    from molforge_eval.report.assembly import assemble_evidence

    page = render_page(assemble_evidence(check(None, None, plan)), {}).decode()

    assert "no greedy episode of every task was counted" in words(page, "tiles")
    assert "n = 3" not in words(page, "tiles")


def test_a_wide_chart_stands_twice_in_a_page_which_shows_one_of_them_at_a_time(page_of) -> None:
    page = page_of("improved")

    assert page.count('<svg class="chart desk"') == page.count('<svg class="chart narrow"') > 1
    assert ".chart.narrow, .live { display: none; }" in page
    assert ".chart.desk { display: none; } .chart.narrow { display: block; }" in page


def test_a_packet_whose_model_has_played_again_shows_the_highest_level(page_of, evidence_of) -> None:
    text = page_of("regenerated")
    standings = {claim.key: claim.standing for claim in evidence_of("regenerated").claims}

    assert standings["adapter_regenerates"] == "supported"
    assert '<span class="mark">E4</span>' in text
    assert "the adapter on its base model wrote the greedy episodes again." in text
    assert "Not shown: that the sampled episodes are the model" in text
    assert "nor the losses, nor how many runs were made." in text
    assert text.count(" --regenerate</code>") == 3
    assert "must print level E4 and 0 episodes differing" in text
    assert 'pip install -c constraints.txt ".[train]"' in text.replace("&#34;", '"')
    assert "<code>molforge-eval verify judge_packet.pdf</code>" in text


def test_a_packet_whose_model_has_played_after_training_only_says_so(page_of, evidence_of) -> None:
    text = page_of("regenerated after")
    standings = {claim.key: claim.standing for claim in evidence_of("regenerated after").claims}

    assert "wrote the greedy episodes after training again." in text
    assert "that the sampled episodes, and any before training, are the model" in text
    assert standings["adapter_regenerates"] == "partly"
