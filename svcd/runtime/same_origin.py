"""Refuses requests that web pages of others send by means of a user's browser.

A page may send requests to any address that the browser reaches, loopback too. Its requests carry
its own `Origin`, or a `Sec-Fetch-Site` that is not `same-origin`. A site has no port: for a browser
a page of a cluster at another port of 127.0.0.1 is `same-site`. After a DNS rebinding requests look
like those of the page to its own server, and only `Host` has the page's name. Programs other than
browsers send neither `Origin` nor `Sec-Fetch-Site`, and the host of the URL that they were given.
A link of another site may lead to a page that does nothing by itself, as a whole window.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Self
from urllib.parse import urlsplit

from twisted.web.http_headers import Headers

from svcd.model.loopback import is_loopback
from svcd.runtime.listening import beyond_loopback
from svcd.settings import ANY_HOST

_MOST_KNOWN: Final = 256
"""Values of `Host` that are remembered as good."""


class SameOrigin:
    """The check for one listener. hosts: names that callers may use; None: any name."""

    def __init__(self, hosts: Collection[str] | None) -> None:
        self._hosts = None if hosts is None else {host.lower() for host in hosts}
        self._known: set[bytes] = set()

    @classmethod
    def at(cls, endpoint: str, hosts: Collection[str]) -> Self:
        """The check for the listener `endpoint` with `server.hosts`.

        Beyond loopback the names of the machine are unknown, so any name is good unless some are
        given.
        """
        any_host = ANY_HOST in hosts or (not hosts and beyond_loopback(endpoint))
        return cls(None if any_host else hosts)

    def fault(self, headers: Headers, check_host: bool = True, is_page: bool = False) -> str:
        """The reason for a refusal, with the setting that would admit the request, or "".

        check_host: False for a request that came through no listener. is_page: what is asked for
        is a page without data and without effect, to which a link of any site may lead.
        """
        host = headers.getRawHeaders(b"Host", _NONE)[-1]
        if check_host and host not in self._known:
            if not self._is_ours(host):
                return (
                    f"the request is for host {_quoted(host)}, and this port answers to loopback"
                    " addresses only: use one of them, or add the host to server.hosts"
                )
            if len(self._known) < _MOST_KNOWN:
                self._known.add(host)
        ours: tuple[bytes, ...] = (b"same-origin", b"none")
        if headers.hasHeader(b"Origin"):
            (origin, *more) = headers.getRawHeaders(b"Origin", _NONE)
            if more or not self._same(origin, host):
                return (
                    f"the request comes from a web page of {_quoted(origin)}: a browser may send"
                    " requests only from pages of this server; add the page's host to server.hosts"
                )
            ours = (*ours, b"same-site")  # server.hosts admits pages of the same site
        if headers.hasHeader(b"Sec-Fetch-Site"):
            site = headers.getRawHeaders(b"Sec-Fetch-Site", _NONE)[-1].strip().lower()
            if site not in ours and not (is_page and _is_link(headers)):
                return (
                    "the request comes from a web page of another host or port"
                    f" (Sec-Fetch-Site: {_quoted(site)}): send it without a browser, or type the"
                    " address into the browser yourself"
                )
        return ""

    def _is_ours(self, host: bytes) -> bool:
        if self._hosts is None or not host:  # only HTTP/1.0, which no browser speaks, has no Host
            return True
        name = _name(host.decode("latin-1"))
        return is_loopback(name) or name.lower() in self._hosts

    def _same(self, origin: bytes, host: bytes) -> bool:
        scheme, slashes, authority = origin.strip().lower().partition(b"://")
        if scheme not in (b"http", b"https") or not slashes:
            return False
        if authority == host.strip().lower():
            return True
        return bool(self._hosts) and _name(authority.decode("latin-1")) in (self._hosts or ())


_NONE: Final = [b""]


def _is_link(headers: Headers) -> bool:
    """Whether a browser opens the answer as a window of its own, and in no frame of a page."""
    mode = headers.getRawHeaders(b"Sec-Fetch-Mode", _NONE)[-1]
    return (mode, headers.getRawHeaders(b"Sec-Fetch-Dest", _NONE)[-1]) == (b"navigate", b"document")


def _name(authority: str) -> str:
    """The host of `host:port`, without the brackets of IPv6; "" when it cannot be read."""
    try:
        return urlsplit("//" + authority.strip()).hostname or ""
    except ValueError:
        return ""


def _quoted(value: bytes) -> str:
    return repr(value[:100].decode("latin-1"))
