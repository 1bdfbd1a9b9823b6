from __future__ import annotations

import html
import re

from molforge_eval.report.notebook import first_page, frame_of
from molforge_eval.report.packet import Packet


def _packet(evidence, folder) -> Packet:
    return Packet(evidence, folder / "evidence.json", folder / "judge_packet.html", None, None, None)


def test_a_notebook_shows_the_first_page_in_a_frame_that_may_do_nothing(evidence_of, tmp_path) -> None:
    shown = _packet(evidence_of("improved"), tmp_path)._repr_html_()
    frames = re.findall(r"<iframe ([^>]*)>", shown)

    assert len(frames) == 1
    assert 'sandbox=""' in frames[0]
    assert "allow" not in frames[0].partition("srcdoc=")[0]
    inner = html.unescape(re.search(r'srcdoc="([^"]*)"', shown)[1])
    assert "Improved" in inner
    assert inner.count('class="tile"') == 4
    assert "<svg" in inner


def test_no_script_of_ours_or_of_the_run_stands_in_it(evidence_of, tmp_path) -> None:
    evidence = evidence_of("improved")
    name = "<script>alert(1)</script>"
    hostile = evidence.model_copy(
        update={"identity": evidence.identity.model_copy(update={"title": name, "run_name": name})}
    )
    shown = _packet(hostile, tmp_path)._repr_html_()

    assert "<script" not in shown
    assert "<script" not in first_page(hostile)
    assert "default-src 'none'" in html.unescape(first_page(hostile))


def test_what_a_packet_says_stands_beside_the_frame_too(evidence_of, tmp_path) -> None:
    head = _packet(evidence_of("withheld"), tmp_path)._repr_html_().partition("<iframe")[0]

    assert "withheld" in head
    assert "judge_packet.html" in head
    assert "evidence level E1" in head


def test_a_run_without_a_score_is_shown_too(evidence_of, tmp_path) -> None:
    assert "Incomplete" in first_page(evidence_of("no plan"))


def test_the_frame_is_small_enough_for_a_notebook(evidence_of, tmp_path) -> None:
    assert len(_packet(evidence_of("improved"), tmp_path)._repr_html_()) < 150_000


def test_a_title_cannot_leave_the_frame() -> None:
    shown = frame_of("<p>", title='"><script>')

    assert "<script" not in shown
    assert shown.count("<iframe") == 1


def test_the_short_ways_lead_to_the_evidence(evidence_of, tmp_path) -> None:
    evidence = evidence_of("withheld")
    packet = _packet(evidence, tmp_path)

    assert (packet.verdict, packet.level) == ("withheld", "E1")
    assert packet.findings == evidence.findings
    assert packet.paths == {"evidence": tmp_path / "evidence.json", "html": tmp_path / "judge_packet.html"}
