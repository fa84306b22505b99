"""Configuration layers (filled in by its own commit)."""
