"""Removes secrets from texts of peers, machines and libraries. Pure.

A peer's refusal may quote a secret of the request, whole or truncated, in any of the usual codings.
So each client removes the secrets that it has sent, before it truncates the text or strips its
tags.

Note: forms and pieces. The functions find known secrets in each form that a text may contain. Of
long secrets they also find pieces, because a peer may have truncated them. A secret with fewer than
LEAST characters stays: removing it would replace half of the text by stars.

Note: two rules for names. `is_secret` masks a value that a record or a plan shows beside its name:
a name that only resembles that of a secret costs one value there. `is_searched` chooses the values
that are searched in free text, such as the output of a program: with the first rule, the arguments
`--tokenizer word --token true` would make stars of each "word" and each "true". So it asks more of
the name and of the value.

Note: passwords of URLs. A password may have a raw slash, so user and password reach up to the last
`@` of the word when a colon follows the user. This also hides host and port of a URL that has an
`@` in its path: to hide too much is safer than too little.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final
from urllib.parse import quote, quote_plus, unquote
from xml.sax.saxutils import escape

from svcd.model.secret import Secret
from svcd.model.xml import content

MASK: Final = "***"
LEAST: Final = 4
"""Fewest characters of a secret that is removed."""
PIECE: Final = 12
"""Fewest characters of a piece of a secret that is removed."""
_NAMES: Final = (
    r"password|passwd|passphrase|secret|token|credential|(?:access|api|private)[._-]?key"
)
"""Parts of the names of secret values; upper and lower case count as the same."""
_TAG: Final = r"<(?:[\w.-]{1,60}:)?"
_END: Final = r"(?:\s[^<>]*)?>"
PROPERTY: Final = re.compile(
    rf"({_TAG}name{_END}([^<]*)</[^<>]{{1,66}}>\s*{_TAG}value{_END})[^<]*", re.IGNORECASE
)
PAIR: Final = re.compile(
    rf"({_TAG}(?:param|env-var|argument|arg|java-opts|java-opt){_END}([^<=]*)=)[^<]*",
    re.IGNORECASE,
)
_ARGUMENT: Final = rf"{_TAG}arg(?:ument)?{_END}"
FLAG: Final = re.compile(
    rf"({_ARGUMENT}\s*(-(?=[^\s<=]*(?:{_NAMES}))[^\s<=]*)\s*</[^<>]{{1,66}}>\s*{_ARGUMENT})"
    rf"(?!\s*-[^\s<=]*(?:{_NAMES}))[^<]*",
    re.IGNORECASE,
)
"""The argument after a flag, unless it is such a flag too."""
OPTION: Final = re.compile(
    rf"(?<![^\s<>=])((?=[^\s<>=]*(?:{_NAMES}))([^\s<>=]+)=)[^\s<>]+", re.IGNORECASE
)
"""A word `name=value` within a value, such as `-Dname=value`."""
DEFINITION: Final = (PROPERTY, PAIR, FLAG, OPTION)
"""The forms of names with values in the definition of a workflow."""
_LINE: Final = re.compile(r"^(([^=<>\n]{1,200})=)[^\n]+", re.MULTILINE)
_OPEN_VALUE: Final = re.compile(
    rf"\A((?:[^<]*</[^<>]{{1,66}}>)?\s*{_TAG}value{_END})[^<]*".encode(), re.IGNORECASE
)
"""The value of a property whose name was cut off."""
_REST_OF_VALUE: Final = re.compile(
    rb"\A[^<]*(</(?:[\w.-]{1,60}:)?"
    rb"(?:value|param|env-var|argument|arg|java-opts|java-opt)\s{0,60}>)",
    re.IGNORECASE,
)
_ACCOUNT: Final = "fs.objstore."
_MOST_TEXT: Final = 16_384
"""Most characters of a text that is searched for pieces."""
_LEAST_CODED: Final = 8
"""Fewest characters of a base64 form that is removed."""
_NAMED: Final = re.compile(_NAMES, re.IGNORECASE)
_PASSWORD: Final = re.compile(r"(?:password|passwd|passphrase|secret)\Z", re.IGNORECASE)
_KEY: Final = re.compile(r"(?:\A|[\W\d_])(?i:token|key|credential)\Z|(?:Token|Key|Credential)\Z")
"""The last word of a name, after a separator or as in `apiToken`."""
_LEAST_KEY: Final = 8
"""Fewest characters of the value of such a name; booleans have fewer."""
_PLAIN: Final = re.compile(
    r"[+-]?[\d.,_]+(?:[eE][+-]?\d+)?"
    r"|(?:\.{0,2}|~)/.*|[A-Za-z][\w+.-]*:/.*"
    r"|[a-z\d._-]+(?:/[a-z\d._-]*)+|[^\s/]+/\S*\.[A-Za-z\d]{1,8}",
    re.DOTALL,
)
"""A number, or a path: with a root or a scheme, in small letters, or to a file with an ending."""
_LONGEST_PLAIN: Final = 4096
"""Most characters of a path."""
_NO_FLAG: Final = re.compile(r"[\s=]")
_USERINFO: Final = re.compile(r"(//)([^/\n]*)@")
_WORD: Final = re.compile(r"[^\s\"<>]+")
_USER: Final = re.compile(r"//[^/:]*:")
_URL_PASSWORD: Final = re.compile(
    r"(//[^:/?@\s]*:)[^\n]*@|((?:ssl)?password=)[^&\n]*", re.IGNORECASE
)
_TRUST: Final = re.compile(r"(/OS-TRUST/trusts/)[^/?\s]+")


def forms(secret: str) -> Sequence[str]:
    """The forms in which a text may contain `secret`, longest first; without short ones."""
    return [form for form in whole_forms(secret) if len(form) >= LEAST]


def whole_forms(text: str) -> Sequence[str]:
    """`text` in each of the usual codings, longest first."""
    plain = {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    plain |= {form for literal in plain for form in (escape(literal), content(literal))}
    spellings = {
        *plain,
        *(repr(literal)[1:-1] for literal in plain),
        *(repr(literal.encode("utf-8", "replace"))[2:-1] for literal in plain),
        *(escape(literal, {'"': "&quot;", "'": "&apos;"}) for literal in plain),
        quote(text, safe=""),
        quote(text),
        quote_plus(text),
        *_coded(text.encode("utf-8", "replace")),
    }
    return sorted(spellings, key=len, reverse=True)


def _coded(secret: bytes) -> Iterator[str]:
    """The base64 forms of `secret`.

    The coding depends on the bytes before the secret, and at its ends on the neighbouring bytes.
    """
    for before, cut in ((0, 0), (1, 2), (2, 3)):
        for code in (base64.b64encode, base64.urlsafe_b64encode):
            text = code(bytes(before) + secret).decode("ascii")[cut:]
            text = text[: -4 if text.endswith("=") else None]
            if len(text) >= _LEAST_CODED:
                yield text


def hidden(text: str, secrets: Iterable[Secret | str], *, whole: bool = False) -> str:
    """`text` with stars in place of each of `secrets`. whole: pieces are left, which is quicker."""
    return without_forms(text, all_forms(secrets), whole=whole) if len(text) >= LEAST else text


def all_forms(secrets: Iterable[Secret | str]) -> Sequence[str]:
    """The forms of each of `secrets`, for `without_forms`: one search for many texts."""
    wanted = {secret.reveal() if isinstance(secret, Secret) else secret for secret in secrets}
    long_enough = (
        literal for literal in sorted(wanted, key=len, reverse=True) if len(literal) >= LEAST
    )
    return [form for secret in long_enough for form in forms(secret)]


def without_forms(text: str, known: Sequence[str], *, whole: bool = False) -> str:
    """`text` with stars in place of each of `known`. whole: see `hidden`."""
    if not whole and PIECE <= len(text) <= _MOST_TEXT:
        text = without_pieces(text, known)
    for form in known:
        text = text.replace(form, MASK)
    return text


def without_pieces(text: str, sent: Sequence[str], least: int = PIECE) -> str:
    """`text` with stars in place of each run of at least `least` characters of any of `sent`.

    All runs are searched in the original text, so that one replacement cannot hide another secret.
    The cost is one pass over each text, because callers choose the length of their secrets.
    """
    runs = set(_runs(text, least))
    common = {run for text in sent for run in _runs(text, least) if run in runs}
    if not common:
        return text
    taken = bytearray(len(text))
    for at, run in enumerate(_runs(text, least)):
        if run in common:
            taken[at : at + least] = bytes([1]) * least
    groups = groupby(range(len(text)), key=lambda at: taken[at])
    return "".join(MASK if hit else "".join(text[at] for at in part) for hit, part in groups)


def _runs(text: str, length: int) -> Iterator[str]:
    return (text[at : at + length] for at in range(len(text) - length + 1))


def shown_url(url: str) -> str:
    """A URL, or a text with URLs, without user, password and the id of a trust: for people."""
    if "@" in url:
        url = _USERINFO.sub(rf"\g<1>{MASK}@", _WORD.sub(_without_userinfo, url))
    return _TRUST.sub(rf"\g<1>{MASK}", url)


def without_passwords(text: str) -> str:
    """`text` with the passwords of URLs in it replaced by stars, also of URLs that are wrong."""
    return _URL_PASSWORD.sub(lambda m: f"{m[1]}***@" if m[1] else f"{m[2]}***", text)


def _without_userinfo(match: re.Match[str]) -> str:
    word = match[0]
    begin, end = _userinfo(word)
    return f"{word[:begin]}{MASK}{word[end:]}" if end else word


def _userinfo(word: str) -> tuple[int, int]:
    """Begin and end of `user:password` in a URL; zeros without one. One pass."""
    user, end = _USER.search(word), word.rfind("@")
    return (user.start() + 2, end) if user is not None and user.end() <= end else (0, 0)


def url_repr(url: str) -> str:
    """The repr of a URL in records: `field(repr=url_repr)`."""
    return repr(shown_url(url))


def without_named(text: str, *patterns: re.Pattern[str]) -> str:
    """`text` with stars in place of each value beside the name of a secret, see `is_secret`.

    patterns: forms of names with values; by default those of configuration files: Hadoop's and
    Oozie's XML, and lines `name=value`. One pass for each: a caller's values may be as long as a
    definition.
    """
    if "<" not in text and "=" not in text:
        return text  # each form contains one of these characters
    for pattern in patterns or (PROPERTY, PAIR, _LINE):
        text = pattern.sub(_masked, text)
    return text


def masked_document(text: str, secrets: Iterable[Secret], *patterns: re.Pattern[str]) -> str:
    """A file or definition of a plan without values beside names of secrets, and `secrets`.

    patterns: see `without_named`.
    """
    return hidden(without_named(text, *patterns), secrets)


def without_told(text: str) -> str:
    """Free text without secret values in XML, and in lines `name=value` by `is_searched`."""
    return _LINE.sub(_told, without_named(text, PROPERTY, PAIR))


def last_lines(content: bytes, most: int) -> bytes:
    """The last whole lines of a file. content: its end, of which at most `most` bytes are wanted.

    From `most` bytes on it may begin within a line, or between the name and the value of a property
    in XML. Then the name of a secret is lost, so its value would not be recognised.
    """
    if len(content) < most:
        return content
    lines = content[-most:].partition(b"\n")[2]
    return without_open_value(lines) if lines else b"%b\n" % MASK.encode()


def without_open_value(lines: bytes) -> bytes:
    """Lines that may begin between the name and the value of a property in XML, without it."""
    lines = _OPEN_VALUE.sub(rb"\1" + MASK.encode(), lines)
    return _REST_OF_VALUE.sub(MASK.encode() + rb"\1", lines)


def _masked(match: re.Match[str]) -> str:
    is_known = is_secret(match[2]) or _is_account(match[2])
    return match[1] + MASK if is_known else match[0]


def _told(match: re.Match[str]) -> str:
    name, value = match[2].strip(), match[0][len(match[1]) :].strip(" \t\r'\"")
    return match[1] + MASK if is_searched(name, value) or _is_account(name) else match[0]


def _is_account(name: str) -> bool:
    _, account, rest = name.lower().partition(_ACCOUNT)
    return bool(account) and "username" in rest


def is_secret(name: str) -> bool:
    """Whether a value that is shown beside `name` is a secret."""
    return _NAMED.search(name) is not None


def is_searched(name: str, value: str) -> bool:
    """Whether `value` is a secret by its name in free text too. See the note.

    value: its first `_LONGEST_PLAIN` characters and one more are enough.
    """
    if _PASSWORD.search(name):
        return True
    if len(value) < _LEAST_KEY or not _KEY.search(name):
        return False
    return len(value) > _LONGEST_PLAIN or not _PLAIN.fullmatch(value)


def named(values: Mapping[str, object]) -> Sequence[Secret]:
    """The values that `is_searched` chooses, and the secrets that other values contain."""
    secrets: list[Secret] = []
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            continue
        text = str(value)
        secrets += [Secret(text)] if is_searched(name, text) else listed([text])
    return secrets


def named_in(options: Iterable[Mapping[str, Mapping[str, object]]]) -> Sequence[Secret]:
    """The secrets in the options of clusters and node groups."""
    return [s for configs in options for values in configs.values() for s in named(values)]


def listed(arguments: Iterable[object]) -> Sequence[Secret]:
    """Secrets in the arguments of a program: `password=X`, `-Da.secret=X`, `--token X`.

    `is_searched` chooses them. The passwords of URLs are always secrets.
    """
    secrets: list[Secret] = []
    flag = ""
    for argument in arguments:
        if not isinstance(argument, str):
            flag = ""
            continue
        if is_searched(flag, argument):
            secrets.append(Secret(argument))
        secrets += [Secret(value) for value in _assigned(argument)]
        secrets += [Secret(value) for value in of_url(argument)]
        flag = argument if argument.startswith("-") and not _NO_FLAG.search(argument) else ""
    return secrets


def _assigned(text: str) -> Iterator[str]:
    """The secret values after `name=`, up to a blank. One pass: an argument may be very long."""
    for word in text.split():
        begin, at = 0, word.find("=")
        while 0 <= at < len(word) - 1:
            if is_searched(word[begin:at], word[at + 1 : at + 2 + _LONGEST_PLAIN]):
                yield word[at + 1 :]
                break
            begin, at = at + 1, word.find("=", at + 1)


def of_url(text: str) -> Sequence[str]:
    """The passwords of the URLs in a text, each as written and decoded."""
    passwords: list[str] = []
    words = _WORD.findall(text) if "@" in text else []
    parts = [word[slice(*_userinfo(word))] for word in words]
    parts += [userinfo for _, userinfo in _USERINFO.findall(text)]
    for password in dict.fromkeys(part.partition(":")[2] for part in parts):
        if password:
            passwords += [password, unquote(password)]
    return passwords
