"""Names of the files of a run, and the allow-list that sealing and packing go by.

A file that matches no pattern here is no part of a run: it is not sealed, not packed, and named by validation.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from molforge_env import __version__

MANIFEST = "run_manifest.json"
PLAN = "eval_plan.json"
ROLLOUTS = "logs/openenv_tool_rollouts.jsonl"
TRAINER_LOG = "logs/trainer_log_history.jsonl"
METRICS_TABLE = "openenv_tool_metrics.csv"
BEFORE = "eval_before_training.json"
AFTER = "eval_after_training.json"
SUMMARY = "openenv_rl_summary.json"
PLOT_DATA = "plots/plot_data.json"
ADAPTER_FOLDER = "adapters"
ADAPTER_CONFIG = "adapters/adapter_config.json"
ADAPTER_WEIGHTS = "adapters/adapter_model.safetensors"
ADAPTER_CARD = "adapters/README.md"
CHECKSUMS = "checksums.json"
EVIDENCE = "evidence.json"
PACKET_HTML = "judge_packet.html"
PACKET_PDF = "judge_packet.pdf"

PLOTS = (
    "plots/reward_curve.png",
    "plots/loss_curve.png",
    "plots/eval_before_after.png",
    "plots/action_distribution.png",
)
"""The pictures that every run has; others may stand beside them."""

LOGS = (ROLLOUTS, TRAINER_LOG)
EVALUATIONS = (BEFORE, AFTER)
TRAINER_FOLDER = "trainer"
"""Where the public script lets the host trainer put its checkpoints; nothing in it is a record."""
TRAINER_STATE = "trainer_state.json"
"""Name of the host trainer's own file, which holds the rows of its log."""
PACKET_FILES = (EVIDENCE, PACKET_HTML, PACKET_PDF)

PACKET_CREATOR = f"molforge-evidence {__version__}"
"""What a packet PDF names as the program that made it; another version words its pages in another way."""
PACKED_ENDING = ".gz"
ENCLOSURES = {
    "evidence.json": EVIDENCE,
    "run_manifest.json": MANIFEST,
    "eval_plan.json": PLAN,
    "eval_before_training.json": BEFORE,
    "eval_after_training.json": AFTER,
    "checksums.json": CHECKSUMS,
    "openenv_rl_summary.json": SUMMARY,
    "plot_data.json": PLOT_DATA,
    "openenv_tool_rollouts.jsonl.gz": ROLLOUTS,
    "trainer_log_history.jsonl.gz": TRAINER_LOG,
    "trainer_state.json": TRAINER_STATE,
}
"""What a packet PDF carries: name of the attachment, and the file of the run that it is. Logs are compressed."""

_RECORD_FILES = (MANIFEST, PLAN, ROLLOUTS, TRAINER_LOG, METRICS_TABLE, BEFORE, AFTER, SUMMARY, PLOT_DATA)
_RECORD_PATTERNS = (
    "plots/*.png",
    "adapters/adapter_config.json",
    "adapters/adapter_model.safetensors",
    "adapters/tokenizer.json",
    "adapters/tokenizer_config.json",
    "adapters/special_tokens_map.json",
    "adapters/added_tokens.json",
    "adapters/chat_template.jinja",
    "adapters/vocab.json",
    "adapters/merges.txt",
    "adapters/tokenizer.model",
    ADAPTER_CARD,
)


def is_record(path: str) -> bool:
    """Tell whether a path of a run directory is a record, which is sealed.

    >>> is_record("plots/loss_curve.png"), is_record("plots/old/loss_curve.png"), is_record("adapters/model.bin")
    (True, False, False)
    """
    if path in _RECORD_FILES:
        return True
    # fnmatch lets `*` cross a slash: the depth is compared first.
    return any(path.count("/") == pattern.count("/") and fnmatchcase(path, pattern) for pattern in _RECORD_PATTERNS)


def leads_to_record(path: str) -> bool:
    """Tell whether a path of a directory is a record, or a folder that holds records.

    >>> leads_to_record("adapters"), leads_to_record("eval_plan.json"), leads_to_record("etc")
    (True, True, False)
    """
    return is_record(path) or any(name.startswith(f"{path}/") for name in (*_RECORD_FILES, *_RECORD_PATTERNS))


def is_packed(path: str) -> bool:
    """Tell whether a path goes into the archive: the records, their seal, and the packet."""
    return is_record(path) or path == CHECKSUMS or path in PACKET_FILES
