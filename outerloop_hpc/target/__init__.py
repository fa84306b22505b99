"""See docs/architecture.md for what belongs here."""
