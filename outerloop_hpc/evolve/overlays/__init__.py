"""Overlays: which files they may hold, how they are frozen, and how they come into a checkout."""
