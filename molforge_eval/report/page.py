"""The packet as one HTML file: no network, no outside file, readable without a script.

A strict content-security policy names the hashes of the one style sheet and of each script; the page may load nothing
but the typefaces that it carries. Vega stands in the page once, for all of its charts.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from markupsafe import Markup

from molforge_eval.report.evidence import Evidence
from molforge_eval.report.live_charts import live_charts, script_json, vega_bundle
from molforge_eval.report.render import Svg
from molforge_eval.report.theme import palettes, variable
from molforge_eval.report.wording import Medium, open_templates, words_for
from molforge_eval.shipped import font_folder, template_folder

FACES = (("Inter", 400, "Inter-Regular"), ("Inter", 500, "Inter-Medium"), ("Inter", 600, "Inter-SemiBold"),
          ("Inter", 700, "Inter-Bold"), ("JetBrains Mono", 400, "JetBrainsMono-Regular"))  # fmt: skip
_HUE = re.compile(r'"(#[0-9a-f]{6})"')


def render_page(evidence: Evidence, figures: Mapping[str, Svg], *, templates: Path | None = None) -> bytes:
    """Write the page.

    Args:
        evidence: Everything that is said.
        figures: The charts by name.
        templates: A folder whose templates stand for shipped ones of the same name.
    """
    environment = open_templates(templates)
    hues = palettes()
    sheets = [environment.get_template(name).render(**hues) for name in ("base.css.j2", "page.css.j2")]
    style = font_faces(_woff2) + "".join(sheets)
    charts = live_charts(figures)
    scripts = {"script": _script("page.js")}
    if charts["charts"]:
        scripts |= {"vega": vega_bundle(), "charts_script": _script("charts.js")}
    sources = " ".join(f"'{_source_hash(script)}'" for script in scripts.values())
    policy = (
        f"default-src 'none'; style-src '{_source_hash(style)}'; script-src {sources}; "
        "font-src data:; base-uri 'none'; form-action 'none'"
    )
    text = environment.get_template("page.html.j2").render(
        **words_for(evidence, figures, Medium(paint_by_role, variable, shelf=None)),
        policy=policy,
        style=Markup(style),  # noqa: S704 # our own sheet
        charts=script_json(charts) if charts["charts"] else None,
        **{name: Markup(script) for name, script in scripts.items()},  # noqa: S704 # our own scripts
    )
    return text.encode("utf-8")


def font_faces(address: Callable[[str], str]) -> str:
    """Write the `@font-face` rules.

    Args:
        address: Where the face of a name stands.
    """
    return "".join(
        f'@font-face{{font-family:"{family}";font-weight:{weight};font-display:block;src:url({address(name)})}}\n'
        for family, weight, name in FACES
    )


def _script(name: str) -> str:
    return (template_folder() / name).read_text(encoding="utf-8")


def _woff2(name: str) -> str:
    data = base64.b64encode((font_folder() / f"{name}.woff2").read_bytes()).decode()
    return f"data:font/woff2;base64,{data}"


def paint_by_role(body: str) -> str:
    """Name the colours of a picture by their roles, so that a dark page shows it dark."""
    roles: dict[str, str] = {}
    for role, hue in palettes()["light"].items():
        roles.setdefault(hue, role)
    return _HUE.sub(lambda found: f'"var(--{roles[found[1]]})"' if found[1] in roles else found[0], body)


def _source_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()
