"""Stewardship: an order says that a benchmark can be gamed; a session mends the ruler, and the tool measures anew."""
