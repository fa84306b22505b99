"""Benchmarks of the tool itself: ``python -m tests.bench [--only NAME]``; what the figures mean is docs/benchmarks.md.

Nothing here asserts a time: machines are noisy, and a figure with its spread and its peer says more than a threshold.
"""
