"""Cases as files: a sound run, edits of it, and what the validator must say; the README of `tests/examples/evidence`
states the language.
"""

# Importing a module puts its edits into the registry.
from evidence_cases import files, forgeries, models, pictures, records

__all__ = ["files", "forgeries", "models", "pictures", "records"]
