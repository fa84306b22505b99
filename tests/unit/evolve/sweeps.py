"""A sweep file, made for tests."""

from __future__ import annotations

SWEEP = """\
schema: sweep/1
name: demo
target: demo
overlay: {allow: ["src/**"], deny: [src/bench.py]}
proposer: {kind: grid, template: {src/p.json: '{"a": {{a}}}'}, values: {a: [1, 2.5, x]}}
tasks:
  - {id: small, command: python run.py small, timeout_s: 10, resources: {cpus: 2}}
metrics: {primary: {name: seconds, direction: min}}
budget: {deadline: 2026-12-01T00:00:00Z}
"""


def sweep(*changes: tuple[str, str]) -> bytes:
    """The file with texts put in the place of others, each of which must be there."""
    text = SWEEP
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text.encode()
