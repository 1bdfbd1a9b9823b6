from __future__ import annotations

import json
import re

import pytest
from drawn_once import draw_once

from molforge_eval.report.live_charts import live_charts, script_json, vega_bundle
from molforge_eval.report.render import Svg
from molforge_eval.report.theme import palettes
from tools.vega_bundle import bundle

OUR_EXPRESSIONS = re.compile(
    r"indexof\(shown, datum\.place\) >= 0|first|last|!?\(?first <= \d+ && last >= \d+\)?"
    r"|datum\.step >= first - \d+ && datum\.step <= last \+ \d+|datum\.value % 1 \? '' : datum\.label"
    r"|datum\.phase(?: \+ (?:'\\n[a-z ]+: '|format\(datum\.[a-z]+, '\.2f'\)|datum\.[a-z]+))+"
)


@pytest.fixture(scope="module")
def live(evidence_of):
    return live_charts(draw_once(evidence_of("improved")))


def strings_of(value, key: str = "") -> list[tuple[str, str]]:
    """Every string below a value with the key that it stands under."""
    if isinstance(value, dict):
        return [found for name, entry in value.items() for found in strings_of(entry, name)]
    if isinstance(value, list):
        return [found for entry in value for found in strings_of(entry, key)]
    return [(key, value)] if isinstance(value, str) else []


def test_every_form_names_data_sets_that_are_there_and_loads_none(live) -> None:
    used = {name for forms in live["charts"].values() for form in forms.values() for name in form["data"]}

    assert used == set(live["datasets"])
    assert '"url"' not in json.dumps(live["charts"])
    assert '"datasets"' not in json.dumps(live["charts"])


def test_every_expression_is_one_of_ours(live) -> None:
    found = [text for key, text in strings_of(live["charts"]) if key in {"expr", "filter", "labelExpr", "calculate"}]

    assert found
    assert [text for text in found if not OUR_EXPRESSIONS.fullmatch(text)] == []


def test_what_a_run_of_the_old_layout_names_stands_in_the_data_alone(old_evidence_of) -> None:
    evidence = old_evidence_of("sound")
    # Two tasks of one label stay two rows.
    labels = ["</script><b>", "</script><b>", "{{ a }}'] + datum.value \N{LINE SEPARATOR}"]
    tasks = [task.model_copy(update={"label": label}) for task, label in zip(evidence.old.tasks, labels, strict=True)]
    named = evidence.model_copy(update={"old": evidence.old.model_copy(update={"tasks": tuple(tasks)})})
    figures = draw_once(named)
    live = live_charts(figures)
    outside, inside = json.dumps([live["charts"], live["config"]]), json.dumps(live["datasets"])

    assert [label for label in labels if json.dumps(label)[1:-1] in outside] == []
    assert [label for label in labels if json.dumps(label)[1:-1] not in inside] == []
    assert figures["hero"].body.count("&lt;/script&gt;&lt;b&gt;") == 2
    assert figures["hero"].height == draw_once(evidence)["hero"].height


def test_colours_are_named_by_role(live) -> None:
    hues = {hue for scheme in palettes().values() for hue in scheme.values()}
    texts = [text for _, text in strings_of(live)]

    assert not hues & set(texts)
    assert "var(--after)" in texts


def test_columns_of_a_data_set_have_one_length(live) -> None:
    for columns in live["datasets"].values():
        assert len({len(cells) for cells in columns.values()}) <= 1


@pytest.mark.parametrize("text", ["</script>", "<!-- <script>", "\N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}", "]]>{{ a"])
def test_no_text_ends_the_script_that_holds_it(text) -> None:
    written = script_json({"run": [text]})

    assert json.loads(written) == {"run": [text]}
    assert not re.search("[<\N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}]", written)


def test_a_number_that_is_none_is_written_as_null() -> None:
    assert script_json({"value": float("nan")}) == '{"value":null}'


def test_the_shipped_vega_is_what_the_pinned_version_gives() -> None:
    assert vega_bundle() == bundle()
    assert "</script" not in vega_bundle()


def test_a_drawing_is_no_chart_and_is_not_drawn_again() -> None:
    assert live_charts({"molecule": Svg(1.0, 1.0, "")})["charts"] == {}
