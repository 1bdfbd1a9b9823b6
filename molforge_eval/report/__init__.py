"""The judge packet: one evidence model, its charts and drawings, one HTML page and one PDF."""
