"""Command lines, one file a group; heavy imports stand inside the commands."""
