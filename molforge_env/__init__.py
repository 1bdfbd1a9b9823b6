"""MolForge laboratory: the rules of a small oncology lab as pure functions, and thin adapters over them."""

from __future__ import annotations

__version__ = "0.1.0"
RULES_VERSION = "molforge-rules/1"

__all__ = ["RULES_VERSION", "__version__"]
