"""Take the browser's Vega out of vl-convert and put it, compressed, beside the templates.

Bundling costs over a second of processor time, which every packet would pay; and a page's bytes would hang on the
version of vl-convert that made it. A test compares the shipped file with what the pinned version gives.

Run it after vl-convert changes: `python -m tools.vega_bundle`; then look through `report_templates/vega/LICENSES.txt`.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from molforge_eval.report.render import VEGA_LITE

TARGET = Path(__file__).resolve().parent.parent / "report_templates" / "vega" / "bundle.js.gz"


def bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that puts `vegaEmbed` on the window."""
    import vl_convert

    return vl_convert.javascript_bundle(vl_version=VEGA_LITE)


if __name__ == "__main__":
    TARGET.write_bytes(gzip.compress(bundle().encode("utf-8"), compresslevel=9, mtime=0))
