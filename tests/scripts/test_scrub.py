"""Secrets, people, machines and their folders are taken out of a text, and the rest stays."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.scrub import GONE, Scrubber, find_secrets

ENVIRONMENT = {
    "HTTPS_PROXY": "http://alice:pr0xy%2Fw0rd@proxy.example:3128",
    "no_scheme_proxy": "bob:0ther-word@proxy.example:3128",
    "SOME_API_KEY": 'va"lue with\\slash',
    "HF_TOKEN": "opaque-value-of-a-token",
    "DOCKER_AUTH_CONFIG": '{"auths": {"registry.example": {"auth": "YWxpY2U6c2VjcmV0d29yZA=="}}}',
    "PATH": "/usr/bin:/bin",
    "PIP_INDEX_URL": "https://index-token-1234@index.example/simple",
    "SHORT_TOKEN": "abc",
}
SCRUBBER = Scrubber(
    ENVIRONMENT,
    {Path("/home/alice/work/rematch"): "[project]", Path("/home/alice"): "~", Path("/"): "nothing"},
    {"alice": "[user]", "box17.lab.example": "[host]", "box17": "[host]", "root": "[user]", "": "[user]"},
)
SECRETS = [
    "pr0xy%2Fw0rd",
    "pr0xy/w0rd",
    "0ther-word",
    'va"lue with\\slash',
    "opaque-value-of-a-token",
    "YWxpY2U6c2VjcmV0d29yZA==",
    "index-token-1234",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("around", ["{}", "x={};", "a {} b", "https://h.example/{}/x", '"{}"'])
def test_a_secret_of_the_environment_is_found_wherever_it_stands(secret: str, around: str) -> None:
    assert secret not in SCRUBBER.scrub(around.format(secret))
    assert json.dumps(secret)[1:-1] not in SCRUBBER.scrub_json(json.dumps({"a": [around.format(secret)]}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GET https://me:word@h.example/p", "GET https://h.example/p"),
        ("GET https://word@h.example/p", "GET https://h.example/p"),
        ("http://u:with/slash@h.example", "http://h.example"),
        ("https://h.example/p?key=word&x=1 next", f"https://h.example/p?{GONE} next"),
        ("https://h.example/p#word next", f"https://h.example/p?{GONE} next"),
        ("Authorization: Bearer abcdef123456", f"Authorization: {GONE} {GONE}"),
        ("--password hunter2hunter2", f"--password {GONE}"),
        ("MY_SECRET=hunter2hunter2", f"MY_SECRET={GONE}"),
        ("ghp_0123456789abcdefABCDEF", GONE),
        ("hf_0123456789abcdefABCDEF", GONE),
        ("AKIAIOSFODNN7EXAMPLE", GONE),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", GONE),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nx", f"{GONE}\nx"),
        ("-----BEGIN PRIVATE KEY-----\ncut", GONE),
        ("from a.person@mail.example.com now", "from [address] now"),
        ("/home/alice/work/rematch/scripts/x.py", "[project]/scripts/x.py"),
        ("/home/alice/data:/home/bob/data", "~/data:/home/[user]/data"),
        ("/Users/carol/x", "/Users/[user]/x"),
        ("/home/alice-2/x", "/home/[user]/x"),
        ("20261201T000000Z-box17-cpu on box17.lab.example", "20261201T000000Z-[host]-cpu on [host]"),
        ("Alice's and malice", "[user]'s and malice"),
    ],
)
def test_what_is_nobody_elses_business_is_taken_out(text: str, expected: str) -> None:
    assert SCRUBBER.scrub(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b",
        "torch 2.15.0 in /opt/stack/lib/python3.11/site-packages, as root",
        "https://index.example/simple/torch/torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        "GPU-11111111-2222-3333-4444-555555555555 at 12:00:01",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "abc",
    ],
)
def test_what_a_report_needs_stays(text: str) -> None:
    assert SCRUBBER.scrub(text) == text
    assert json.loads(SCRUBBER.scrub_json(json.dumps([text]))) == [text]


def test_a_value_that_is_called_a_secret_is_taken_out_of_json_whatever_it_is() -> None:
    content = {"api_token": {"deep": [1, "x"]}, "password": None, "plain": [1, 2.5, True, None]}
    assert json.loads(SCRUBBER.scrub_json(json.dumps(content))) == {
        "api_token": GONE,
        "password": GONE,
        "plain": [1, 2.5, True, None],
    }


@pytest.mark.parametrize("text", ["{", '{"a": "https://me:word@h.example', "", "[" * 100_000])
def test_what_is_no_json_is_scrubbed_as_text(text: str) -> None:
    assert "word" not in SCRUBBER.scrub_json(text)


def test_only_what_is_called_a_secret_or_stands_in_an_address_is_one() -> None:
    harmless = {"PATH": "/usr/bin", "XMODIFIERS": "@im=ibus", "KEYBOARD": "norwegian", "HF_TOKEN": "short"}
    assert find_secrets(harmless) == set()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_json_stays_json(content: object) -> None:
    json.loads(SCRUBBER.scrub_json(json.dumps(content)))


@given(st.text(), st.text(), st.sampled_from(SECRETS))
def test_no_text_around_a_secret_hides_it(before: str, after: str, secret: str) -> None:
    # It may be hidden only in being longer than it is.
    assert secret not in SCRUBBER.scrub(f"{before}{secret}{after}")
