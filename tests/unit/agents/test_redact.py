"""Keys that nobody told us of do not go on; what is none stays readable."""

from __future__ import annotations

import pytest

from outerloop_hpc.agents.redact import redacted, without_keys

pytestmark = pytest.mark.unit

KEY = "Zz9" * 10


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {KEY}",
        f"https://ann:{KEY}@host/path",
        f"API_KEY={KEY}",
        f'"api-key": "{KEY}"',
        f"MY_SECRET_TOKEN: {KEY}",
        f"password = '{KEY}'",
        f"sk-{KEY}",
        f"ghp_{KEY}",
        f"github_pat_{KEY}",
        f"eyJ{KEY}.{KEY}.{KEY}",
        f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\n-----END RSA PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\n{KEY}\nand no end",
    ],
)
def test_what_looks_like_a_key_is_masked_and_what_is_around_it_stays(text: str) -> None:
    found = without_keys(f"before\n{text}\n")
    assert KEY not in found
    assert "[redacted]" in found
    assert found.startswith("before\n")


@pytest.mark.parametrize(
    "text",
    [
        '{"seconds": 12.5, "success": true}',
        'Traceback (most recent call last):\n  File "solver.py", line 3, in <module>',
        "loss 0.41 after 3 tokens",
        "https://example.org/page?x=1",
        "c3c33b9cddae3edab1dfae9fcf0e6e2b2f3a5d8b1d8f7a9b0c1d2e3f4a5b6c7d",
        "sk-learn",
    ],
)
def test_numbers_tracebacks_and_digests_stay_as_they_are(text: str) -> None:
    assert without_keys(text) == text


def test_masking_twice_changes_nothing_more() -> None:
    once = without_keys(f"token={KEY} Bearer {KEY}")
    assert without_keys(once) == once


def test_a_known_secret_is_masked_in_other_spellings() -> None:
    assert redacted("a%2Fb%2Fcdefg", ["a/b/cdefg"]) == "[redacted]"


def test_a_private_key_whose_beginning_was_cut_off_is_masked() -> None:
    assert without_keys(f"{KEY}\n-----END PRIVATE KEY-----\nafter") == "[redacted]\nafter"
