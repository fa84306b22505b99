"""Values in templates stand where they were meant, once."""

from __future__ import annotations

import pytest

from outerloop_hpc.evolve.proposers.template import filled

pytestmark = pytest.mark.unit


def test_values_stand_in_every_file_in_the_spelling_of_json_or_as_they_are() -> None:
    template = {"a.py": "x = {{x}}; y = {{y}}; x = {{x}}", "b.yaml": "on: {{on}}\nname: {{name}}"}
    found = filled(template, {"x": 3, "y": 1e-05, "on": True, "name": "it's"})
    assert found.files == {"a.py": b"x = 3; y = 1e-05; x = 3", "b.yaml": b"on: true\nname: it's"}


def test_a_value_is_not_looked_at_again_and_other_braces_stay() -> None:
    found = filled({"a": "{{x}} {{ x }} {{other}} {x}"}, {"x": "{{y}}", "y": 1})
    assert found.files == {"a": b"{{y}} {{ x }} {{other}} {x}"}
