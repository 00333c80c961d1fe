# mypy: allow-untyped-calls
"""Opens the listening ports of the settings. Each error says what to do."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from twisted.internet.endpoints import serverFromString
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IListeningPort, IStreamServerEndpointStringParser
from twisted.plugin import getPlugins

from svcd.model.loopback import is_loopback
from svcd.runtime.tasks import shielded

_HOST_AND_PORT = re.compile(
    r"tcp:(?P<host>[A-Za-z0-9_.-]*[A-Za-z.][A-Za-z0-9_.-]*|\[[0-9a-f:.]+\]):(?P<port>[0-9]+)"
)
_NO_KIND = re.compile(r"([^:/]*\.[^:/]*|localhost|\[[0-9a-f:.]+\]|):[0-9]+|[0-9]+")
_PART = re.compile(r"(?:^|:)((?:\\.|[^:\\])*)", re.DOTALL)
_NAMED = re.compile(r"((?:\\.|[^=\\])*)=(.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)

_FAMILIES = {"tcp": socket.AF_INET, "ssl": socket.AF_INET, "tcp6": socket.AF_INET6}
_BACKLOG = 1024
"""Most connections that wait to be accepted. Twisted's default of 50 is too small for a short
moment of other work; each further peer then waits a second for the next attempt of its kernel."""


class ListenError(Exception):
    """The port cannot be opened: one line that says why and what to do."""


class EndpointError(ListenError):
    """The text of the setting is not an endpoint."""


def description(text: str) -> str:
    """Twisted's description of `tcp:HOST:PORT`; any other endpoint text is returned unchanged.

    An IPv6 address is written in brackets.
    """
    match = _HOST_AND_PORT.fullmatch(text)
    if match is None:
        return text
    host, port = match["host"], match["port"]
    if host.startswith("["):
        escaped = host[1:-1].replace(":", r"\:")
        return f"tcp6:{port}:backlog={_BACKLOG}:interface={escaped}"
    return f"tcp:{port}:backlog={_BACKLOG}:interface={host}"


def malformed(text: str) -> str:
    """The reason why `text` is no endpoint, with the remedy; "" for an endpoint or no text."""
    kind = text.partition(":")[0]
    if _NO_KIND.fullmatch(text):
        host, _, port = text.rpartition(":")
        whole = f"tcp:{text}" if host else f"tcp:127.0.0.1:{port}"
        return f"{text} does not say how to listen: write {whole}"
    if (
        text
        and kind not in (*_FAMILIES, "unix", "systemd")
        and kind.lower() not in _further_kinds()
    ):
        return f"{text!r} begins with no kind of endpoint: write tcp:HOST:PORT or unix:PATH"
    if kind in ("tcp", "tcp6") and address_of(text) is None:
        return f"{text!r} has no port in its place: write tcp:HOST:PORT"
    return ""


def _further_kinds() -> Sequence[str]:
    """The kinds of endpoints that Twisted and installed packages add."""
    return [parser.prefix.lower() for parser in getPlugins(IStreamServerEndpointStringParser)]


def beyond_loopback(text: str) -> bool:
    """Whether other machines may reach the endpoint `text`. An endpoint of unknown kind counts."""
    parts, named = _parsed(description(text))
    if parts[:1] == ["unix"] or len(parts) + len(named) < 2:  # the start refuses half an endpoint
        return False
    interface = named.get("interface")
    if interface is None and parts[0] in ("tcp", "tcp6") and len(parts) > 2:
        interface = parts[2]
    return interface is None or not is_loopback(interface)


def socket_of_all(text: str) -> bool:
    """Whether the endpoint `text` is a socket file without a mode: every user may connect to it."""
    parts, named = _parsed(text)
    return parts[:1] == ["unix"] and "mode" not in named and len(parts) <= 2


def _parsed(text: str) -> tuple[list[str], dict[str, str]]:
    """Parts without and with a name, as Twisted reads them: the last one of a name counts."""
    parts: list[str] = []
    named: dict[str, str] = {}
    for part in _PART.findall(text):
        match = _NAMED.fullmatch(part)
        if match is None:
            parts.append(_ESCAPED.sub(r"\1", part))
        else:
            name, value = (_ESCAPED.sub(r"\1", group) for group in match.groups())
            named[name] = value
    return parts, named


def encrypted(text: str) -> bool:
    """Whether the endpoint `text` speaks TLS."""
    return text.partition(":")[0] in ("ssl", "tls")


def with_port(text: str, port: int) -> str:
    """`text` with `port` in place of port 0; "" when the text names another port."""
    changed, found = re.subn(r"(tcp6?:(?:.*:)?)0(?=$|:)", rf"\g<1>{port}", text, count=1)
    return changed if found else ""


def address_of(text: str) -> tuple[socket.AddressFamily, str, int] | None:
    """Family, interface and port of an endpoint that listens on TCP; None for another kind."""
    parts, named = _parsed(description(text))
    family = _FAMILIES.get(parts[0])
    port = named.get("port") or (parts[1] if len(parts) > 1 else "")
    if family is None or not (port.isascii() and port.isdecimal()):
        return None
    host = named.get("interface") or (parts[2] if parts[0] != "ssl" and len(parts) > 2 else "")
    return family, host or ("::" if family == socket.AF_INET6 else "0.0.0.0"), int(port)


def file_of(text: str) -> Path | None:
    """The socket file of an endpoint; None when it has none."""
    parts, named = _parsed(text)
    if parts[:1] != ["unix"]:
        return None
    name = named.get("address") or (parts[1] if len(parts) > 1 else "")
    return Path(name).absolute()


def endpoint_of(reactor: Any, setting: str, text: str) -> Any:
    """The endpoint of the `setting`, without opening it. Raises ListenError."""
    with _refused(setting, text):
        return serverFromString(reactor, description(text))


async def listen(reactor: Any, setting: str, text: str, factory: Any) -> IListeningPort:
    """Open the port of the `setting`. Raises ListenError."""
    endpoint = endpoint_of(reactor, setting, text)
    with _refused(setting, text):
        port: IListeningPort = await shielded(endpoint.listen(factory))
        return port


@contextmanager
def _refused(setting: str, text: str) -> Iterator[None]:
    """Name what a person has to change. Raises ListenError."""
    try:
        yield
    except CannotListenError as error:
        raise ListenError(
            f"cannot listen on {text}: {error.socketError};"
            f" stop the program that uses the port (ss -ltnp), or choose another {setting}"
        ) from None
    except (LookupError, AttributeError) as error:
        if not text.startswith("systemd:"):
            raise _no_endpoint(setting, text, error) from None
        raise EndpointError(
            f"cannot listen on {text}: the service manager has handed over no such socket;"
            " start svcd by a unit with a .socket unit beside it (FileDescriptorName is the"
            f" name in {setting}), or write {setting} as tcp:HOST:PORT"
        ) from None
    except (ValueError, TypeError, OverflowError) as error:
        raise _no_endpoint(setting, text, error) from None
    except OSError as error:
        raise ListenError(f"cannot listen on {text}: {error}; choose another {setting}") from None


def _no_endpoint(setting: str, text: str, error: Exception) -> EndpointError:
    why = str(error).splitlines()[0] if str(error) else type(error).__name__
    return EndpointError(f"cannot listen on {text}: {why}; write {setting} as tcp:HOST:PORT")


def url_of(port: IListeningPort, text: str) -> str:
    """The base URL at which this machine reaches the listening port of the endpoint `text`."""
    host = cast("Any", port.getHost())
    name = getattr(host, "host", "")
    if not name:
        return str(host)
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(name, f"[{name}]" if ":" in name else name)
    return f"{'https' if encrypted(text) else 'http'}://{shown}:{host.port}"


def origin_of(url: str) -> str:
    """Scheme and host of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
