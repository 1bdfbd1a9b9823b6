"""Makes the built-in model from nothing: tokenizer, base and start adapter. No run of anybody's own model needs it."""

__all__: list[str] = []
