"""Charts for tests whose subject is what stands around them: one that was drawn before is not drawn again.

Most charts of one run are those of another with the same records, and drawing them costs more than the page.
"""

from __future__ import annotations

import orjson

from molforge_eval.report.evidence import Evidence
from molforge_eval.report.figures import charts_of
from molforge_eval.report.render import Svg, svg_of
from molforge_eval.report.vega_lite import specification_of, unchecked

_DRAWN: dict[tuple[str, bytes], Svg] = {}


def draw_once(evidence: Evidence) -> dict[str, Svg]:
    """Draw what `draw_figures` draws; a chart that is drawn for the first time is held to the schema of Vega-Lite."""
    with unchecked():
        charts = charts_of(evidence)
    figures: dict[str, Svg] = {}
    for name, chart in charts.items():
        key = (name, orjson.dumps(specification_of(chart), option=orjson.OPT_NON_STR_KEYS))
        if key not in _DRAWN:
            chart.drawn.to_dict(validate=True)
            _DRAWN[key] = svg_of(chart, prefix=name.replace("_", "-"))
        figures[name] = _DRAWN[key]
    return figures
