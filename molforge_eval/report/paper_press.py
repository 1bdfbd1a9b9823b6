"""The child process that makes a PDF: it reads one folder, loads nothing from anywhere else, and writes one file.

Its own limits on memory and processor time stand before the document is looked at.
"""

from __future__ import annotations

import ctypes
import gc
import resource
import signal
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

_SIGNAL_AT_PARENTS_DEATH = 1
_NO_PANGO = 97
_NO_WEASYPRINT = 98
_LAST_OF_FIRST = "provenance"
"""The element that ends the first page."""
_END_OF_CLAIMS = b"</rdf:RDF>"
_CLAIM = b"""\
<rdf:Description rdf:about="" xmlns:pdfuaid="http://www.aiim.org/pdfua/ns/id/">
<pdfuaid:part>1</pdfuaid:part>
</rdf:Description>
<rdf:Description rdf:about="" xmlns:pdfaExtension="http://www.aiim.org/pdfa/ns/extension/"
 xmlns:pdfaSchema="http://www.aiim.org/pdfa/ns/schema#" xmlns:pdfaProperty="http://www.aiim.org/pdfa/ns/property#">
<pdfaExtension:schemas><rdf:Bag><rdf:li rdf:parseType="Resource">
<pdfaSchema:schema>PDF/UA identification</pdfaSchema:schema>
<pdfaSchema:namespaceURI>http://www.aiim.org/pdfua/ns/id/</pdfaSchema:namespaceURI>
<pdfaSchema:prefix>pdfuaid</pdfaSchema:prefix>
<pdfaSchema:property><rdf:Seq><rdf:li rdf:parseType="Resource">
<pdfaProperty:name>part</pdfaProperty:name>
<pdfaProperty:valueType>Integer</pdfaProperty:valueType>
<pdfaProperty:category>internal</pdfaProperty:category>
<pdfaProperty:description>Part of the standard whose settings were used</pdfaProperty:description>
</rdf:li></rdf:Seq></pdfaSchema:property>
</rdf:li></rdf:Bag></pdfaExtension:schemas>
</rdf:Description>
"""
"""PDF/A has to be told of the property by which PDF/UA is named."""


def main(folder: Path) -> int:
    """Make `page.pdf` from the order in a folder; return the exit code."""
    # A process that makes one document and ends has nothing to collect; looking for it takes a sixth of its time.
    gc.disable()
    end_with_parent()
    # What the libraries put down goes when the folder goes, however this process ends.
    tempfile.tempdir = str(folder)
    order = orjson.loads((folder / "order.json").read_bytes())
    _limit(order["memory_bytes"], order["seconds"])
    try:
        import weasyprint
        from weasyprint.urls import URLFetcher, URLFetcherResponse
    except ModuleNotFoundError as error:
        sys.stderr.write(f"{error}\n")
        return _NO_WEASYPRINT
    except OSError as error:
        # The system library is loaded at import, and this is how its absence shows.
        sys.stderr.write(f"{error}".splitlines()[0] + "\n")
        return _NO_PANGO

    class Shelf(URLFetcher):  # type: ignore[misc] # the library has no types
        """Knows what lies in the folder, by the addresses of the order; no other address can be read."""

        def fetch(self, url: str, headers: Any = None) -> URLFetcherResponse:  # noqa: ARG002 # the library's signature
            piece = order["shelf"].get(url)
            if piece is None:
                raise ValueError(f"address outside the document: {url[:80]}")
            kind = "image/svg+xml" if url.endswith(".svg") else "font/ttf"
            return URLFetcherResponse(url, (folder / piece).read_bytes(), {"Content-Type": kind})

    fetcher = Shelf(allowed_protocols=(), allow_redirects=False)
    fonts = weasyprint.text.fonts.FontConfiguration()
    style = weasyprint.CSS(
        string=(folder / "page.css").read_text(encoding="utf-8"), url_fetcher=fetcher, font_config=fonts
    )
    html = weasyprint.HTML(string=(folder / "page.html").read_text(encoding="utf-8"), url_fetcher=fetcher)
    options = {"pdf_variant": "pdf/a-3a", "pdf_identifier": order["identifier"].encode()}
    document = html.render(font_config=fonts, stylesheets=[style], **options)
    for tighter in order["tighter"]:
        if not _runs_over(document):
            break
        sheets = [style, weasyprint.CSS(string=tighter, font_config=fonts)]
        document = html.render(font_config=fonts, stylesheets=sheets, **options)
    document.metadata.attachments += _attachments(folder, order)
    document.write_pdf(folder / "page.pdf", finisher=_finish, **options)
    return 0


def _runs_over(document: Any) -> bool:
    """Tell whether the last line of the first page stands on another page."""
    return any(_LAST_OF_FIRST in page.anchors for page in document.pages[1:])


def _attachments(folder: Path, order: dict[str, Any]) -> list[Any]:
    import weasyprint

    moment = datetime.fromisoformat(order["created"])
    return [
        weasyprint.Attachment(
            string=(folder / f"enclosure-{number}").read_bytes(),
            name=entry["name"],
            description=entry["description"],
            created=moment,
            modified=moment,
            relationship="Data",
        )
        for number, entry in sorted(enumerate(order["enclosures"]), key=_name_of)
    ]


def _name_of(numbered: tuple[int, dict[str, str]]) -> str:
    """Names stand in the order in which a reader of the document searches them."""
    return numbered[1]["name"]


def _finish(_document: Any, pdf: Any) -> None:
    """Complete what the PDF/A-3 output leaves out of the settings of PDF/UA-1."""
    files = pdf.catalog.get("AF")
    if files is not None:
        # The output names each attachment twice.
        pdf.catalog["AF"] = type(files)(dict.fromkeys(files))
    by_reference: dict[bytes, Any] = {bytes(entry.reference): entry for entry in pdf.objects if hasattr(entry, "get")}
    for entry in by_reference.values():
        if entry.get("S") == "/TH":
            group = by_reference[bytes(by_reference[bytes(entry["P"])]["P"])]
            entry["A"]["Scope"] = "/Column" if group.get("S") == "/THead" else "/Row"
    for entry in pdf.objects:
        if getattr(entry, "extra", {}).get("Type") == "/Metadata":
            entry.stream = [piece.replace(_END_OF_CLAIMS, _CLAIM + _END_OF_CLAIMS) for piece in entry.stream]


def end_with_parent() -> None:
    """Let the system end this process when the one that asked for the document is killed; only Linux can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SIGNAL_AT_PARENTS_DEATH, signal.SIGKILL)


def _limit(memory_bytes: int, seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
