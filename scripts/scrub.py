"""Taking out of a text what is nobody else's business: secrets, people, machines and their folders."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

GONE = "[removed]"
LEAST = 6
"""Characters of a secret; what is shorter occurs by chance."""
COMMON = ("root", "runner", "user", "localhost", "host", "docker", "ubuntu", "debian", "build", "python")
"""Names that tell nothing about anybody."""
_SECRET = re.compile(
    r"token|secret|passw|passphrase|credential|cookie|(?:^|[_-])(?:auth|pass|pwd|pat)(?:$|[_-])"
    r"|(?:api|access|private|signing|encryption|account)[_-]?key",
    re.IGNORECASE,
)
"""In names of variables and of values."""
_URL = r"""(?:[^\s"'<>\\])"""
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    # Whoever is named before the host of an address, and all that follows its path.
    (re.compile(rf"(://){_URL}*@"), r"\1"),
    (re.compile(r"""(://[^\s"'<>\\?#]*)[?#]""" + rf"{_URL}*"), rf"\1?{GONE}"),
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{6,}", re.IGNORECASE), rf"\1 {GONE}"),
    (
        re.compile(
            r"""\b([\w-]*(?:authorization|token|password|passwd|secret|api[_-]?key|credentials?)[\w-]*)"""
            r"""(["']?\s*[:=]\s*["']?|\s+)([^\s"'<>\\,;\[]{4,})""",
            re.IGNORECASE,
        ),
        rf"\1\2{GONE}",
    ),
    # As the services spell them that people have tokens of.
    (
        re.compile(
            r"\b(?:gh[opsur]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|hf_\w{16,}|npm_\w{16,}"
            r"|pypi-[\w-]{16,}|dckr_pat_[\w-]{16,}|sk-[\w-]{16,}|xox[abprs]-[\w-]{10,}|A[KS]IA[A-Z0-9]{16}"
            r"|AIza[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
        ),
        GONE,
    ),
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*-----|\Z)", re.DOTALL), GONE),
    (re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b"), "[address]"),
    (re.compile(r"""/(home|Users)/[^/\s"'<>:,;\\]+"""), r"/\1/[user]"),
)  # fmt: skip


class Scrubber:
    """Knows what this host and its user are called, and the secrets in the environment."""

    def __init__(
        self, environment: Mapping[str, str], folders: Mapping[Path, str], names: Mapping[str, str]
    ) -> None:
        """
        Args:
            folders: what to call folders instead.
            names: what to call people and machines instead.
        """
        replaced: list[tuple[re.Pattern[str], str]] = []
        for secret in sorted(find_secrets(environment), key=len, reverse=True):
            replaced += [(re.compile(re.escape(form)), GONE) for form in _spell(secret)]
        replaced += _PATTERNS[:-1]
        for folder, name in sorted(folders.items(), key=lambda one: len(str(one[0])), reverse=True):
            if len(folder.parts) > 1:
                replaced.append((re.compile(rf"{re.escape(str(folder))}(?![\w.-])"), name))
        replaced.append(_PATTERNS[-1])
        for name, other in names.items():
            if len(name) > 2 and name.lower() not in COMMON:
                # Also as a part of a longer name, as runs have a host's.
                word = rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])"
                replaced.append((re.compile(word, re.IGNORECASE), other))
        self._replaced = replaced

    def scrub(self, text: str) -> str:
        """Scrub plain text."""
        for pattern, other in self._replaced:
            text = pattern.sub(other, text)
        return text

    def scrub_json(self, text: str) -> str:
        """Scrub JSON, which stays such, and whatever else is said to be JSON as plain text."""
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            return self.scrub(text)
        return json.dumps(self._walk(content), indent=1, ensure_ascii=False)

    def _walk(self, content: Any) -> Any:
        if isinstance(content, dict):
            return {
                self.scrub(name): GONE if _SECRET.search(name) else self._walk(value)
                for name, value in content.items()
            }
        if isinstance(content, list):
            return [self._walk(one) for one in content]
        return self.scrub(content) if isinstance(content, str) else content


def find_secrets(environment: Mapping[str, str]) -> set[str]:
    """Find secrets in variables: values of those that are called so, and passwords in addresses."""
    found: set[str] = set()
    for name, value in environment.items():
        if _SECRET.search(name):
            # A configuration has its secrets within.
            found.update((value, *re.findall(r"""[^\s"'{}:,]{12,}""", value)))
        for address in re.split(r"[\s,]+", value):
            scheme, _, rest = address.rpartition("//")
            user, at, _ = rest.partition("@")
            # Without a scheme, as proxies may be given, only what has a password is one.
            if at and (scheme or ":" in user):
                found.add(user.partition(":")[2] or user)
    found |= {unquote(one) for one in found}
    return {one for one in found if len(one) >= LEAST}


def _spell(secret: str) -> Iterable[str]:
    """Spell a secret as it may stand in addresses and in JSON too."""
    return dict.fromkeys((secret, json.dumps(secret)[1:-1], quote(secret, safe=""), quote(secret)))
