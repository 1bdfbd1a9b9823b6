from __future__ import annotations

from pathlib import Path

from drawn_once import draw_once
from numeral_walk import strays

from molforge_eval import layout
from molforge_eval.report.evidence import Evidence
from molforge_eval.report.figures import charts_of
from molforge_eval.report.number_rows import NumberRows
from molforge_eval.report.page import render_page
from molforge_eval.report.paper import write_markup
from molforge_eval.report.recount import recount
from molforge_eval.report.trace_subject import open_subject
from molforge_eval.report.vega_lite import specification_of, unchecked
from molforge_eval.run_directory import load

SENTENCE = "Stops that training went on after: "


def test_a_resumed_run_says_how_often_from_where_and_what_gave_way(resumed_evidence: Evidence) -> None:
    evidence = resumed_evidence

    assert evidence.number("resume.count").value == 1
    assert evidence.number("resume.superseded").value == 12
    assert [(row.number, row.step) for row in evidence.resumes] == [(0, 2)]
    assert evidence.number("resume.0.step").value == 2


def test_superseded_episodes_are_in_no_count(resumed_run: Path, resumed_evidence: Evidence) -> None:
    run = load(resumed_run)
    played = run.every_rollout["episode_id"].n_unique()

    assert resumed_evidence.number("training.episodes").value == played - 12


def test_the_page_and_the_paper_say_it_and_every_numeral_of_them_has_its_origin(resumed_evidence: Evidence) -> None:
    evidence, figures = resumed_evidence, draw_once(resumed_evidence)
    page = render_page(evidence, figures).decode()
    sheet = write_markup(evidence, figures, created="some day")

    for markup in (page, sheet.markup):
        assert SENTENCE in markup
        assert "Superseded episodes: " in markup
        assert 'href="#resumed"' in markup
        assert "Dashed rules where training went on after a stop: step 2." in markup
        assert strays(markup, evidence) == []


def test_every_curve_over_steps_has_a_dashed_rule_there(resumed_evidence: Evidence, evidence_of) -> None:
    def rules(evidence: Evidence) -> dict[str, list[object]]:
        found = {}
        with unchecked():
            charts = charts_of(evidence)
        for name, chart in charts.items():
            drawn = specification_of(chart)
            dashed = [part for part in drawn.get("layer", []) if part.get("mark", {}).get("strokeDash") == [3, 3]]
            found[name] = [row for part in dashed for row in drawn["datasets"][part["data"]["name"]]]
        return found

    marked = rules(resumed_evidence)

    assert {name for name, found in marked.items() if found} >= {"reward", "loss", "grad_norm", "sentinel"}
    assert {row["step"] for found in marked.values() for row in found} == {2}
    assert not any(rules(evidence_of("improved")).values())


def test_the_numbers_are_traced_to_the_rows_that_say_so(resumed_run: Path) -> None:
    subject = open_subject(load(resumed_run))
    rows = NumberRows(load(resumed_run), subject.evidence)

    for number_id, fields in (("resume.count", ["/type"]), ("resume.0.step", ["/step"])):
        found = rows.of(subject.evidence.number(number_id))
        assert [(row.file, row.line, row.pointer) for row in found] == [(layout.TRAINER_LOG, 5, fields[0])]


def test_a_packet_that_hides_a_stop_is_found_out(resumed_run: Path, resumed_evidence: Evidence) -> None:
    hidden = resumed_evidence.model_copy(
        update={
            "resumes": (),
            "numbers": tuple(item for item in resumed_evidence.numbers if not item.id.startswith("resume.")),
        }
    )
    found = [item.what for item in recount(hidden, load(resumed_run))]

    assert "number resume.count is missing" in found
    assert list(recount(resumed_evidence, load(resumed_run))) == []


def test_nothing_is_said_of_a_run_that_went_through(evidence_of) -> None:
    evidence = evidence_of("improved")

    assert evidence.resumes == ()
    assert [number.id for number in evidence.numbers if number.id.startswith("resume.")] == []
    assert SENTENCE not in render_page(evidence, draw_once(evidence)).decode()
