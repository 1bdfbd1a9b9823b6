"""The TRL plugin: a GRPO run in the MolForge laboratory that leaves a run directory."""

__all__: list[str] = []
