"""Renderings of the same findings, for a person and for a program."""
