"""Whether a packet that lies in the run was built from it. A packet is no record: it can be built again at any time."""

from __future__ import annotations

from collections.abc import Iterator

from molforge_eval import layout
from molforge_eval.catalogue import finding, short
from molforge_eval.findings import Finding
from molforge_eval.ledger import Ledger
from molforge_eval.record_files import read_json
from molforge_eval.run_directory import RunDirectory
from molforge_eval.shape import shape_of


def check(run: RunDirectory) -> Iterator[Finding]:
    """Compare `evidence.json`, when there is one, with its schema and with the seal of the run."""
    path = layout.EVIDENCE
    if path not in run.files:
        return
    ledger = Ledger(run.limits.findings_a_code)
    parsed = read_json(run.files, path, ledger, run.limits)
    faults = [item.what for item in ledger.findings()]
    if parsed.usable and not faults:
        shape = shape_of("evidence")
        faults = (
            []
            if shape.fits(parsed.value)
            else [f"{misfit.pointer} {misfit.what}" for misfit in shape.explain(parsed.value)]
        )
    if faults:
        what = f"the evidence of the packet is not that of this version: {faults[0].strip()}"
        yield finding("PACKET_UNFIT", what, file=path)
        return
    root = None if run.checksums is None else run.checksums.root_sha256
    built_from = parsed.value["identity"]["root_sha256"]
    if root is not None and built_from != root:
        names = "a run without a seal" if built_from is None else f"root {short(built_from)}"
        what = f"the packet was built from {names}, the run is sealed as {short(root)}"
        yield finding("PACKET_OUTDATED", what, file=path, pointer="/identity/root_sha256")
