"""What the validator asks of a run, one module a subject; each yields findings and never raises for bad evidence."""
