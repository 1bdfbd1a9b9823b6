"""Play, record, validate, replay, compare and report."""

__all__: list[str] = []
