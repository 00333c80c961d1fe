# mypy: allow-untyped-calls
"""The program `twistd svcd`: options, log observer, signals, exit code, and the reactor.

No other module imports the reactor.

Note: why `reactor.seconds` is replaced. Twisted's reactor times its delayed calls by its own method
`seconds`, which reads the wall clock. If the wall clock were set back, all timers would stop until
it has caught up. See `svcd.runtime.clock`. The reactor takes no other clock, and a wrapper around
it would not reach the calls that Twisted itself delays (time-outs of connections). The docstring of
IReactorTime.seconds leaves the source open, and the attribute is public. `make` alone sets it,
once, before the first timer of svcd.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import io
import linecache
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any, ClassVar, NoReturn, Protocol, cast

from twisted.application.service import MultiService
from twisted.internet import reactor as _reactor  # noqa: TID251
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IReactorCore
from twisted.logger import ILogObserver, Logger
from twisted.python import usage
from twisted.python.components import Componentized
from twisted.python.failure import Failure

from svcd.declaration import SettingsError
from svcd.runtime import logs
from svcd.runtime.clock import SteadyTime
from svcd.runtime.preflight import SettingsRefused, StartError, check
from svcd.settings import Loaded, load, schema

log = Logger()

_NEVER = 1 << 30
"""Collections of younger objects before a full one."""


class Options(usage.Options):
    """Flags of `twistd svcd` and `twistd svcd-cloud`.

    constants: `--set` takes constants too, see `svcd.settings`. Only programs of tests set it.
    """

    constants: ClassVar[bool] = False
    synopsis = "[--config FILE] [--set SECTION.KEY=VALUE]…"
    optParameters: ClassVar[list[list[object]]] = [
        ["config", "c", None, "settings file (TOML)"],
    ]

    def __init__(self) -> None:
        super().__init__()
        self.flags: list[str] = []
        self.loaded: Loaded | None = None

    def opt_set(self, text: str) -> None:
        """SECTION.KEY=VALUE: one setting; may be given several times"""
        self.flags.append(text)

    def parseOptions(self, options: Sequence[str] | None = None) -> None:
        """Parse `options`. Wrong usage or settings print one line on stderr and exit with 2."""
        try:
            super().parseOptions(options)
            config = Path(self["config"]) if self["config"] else None
            self.loaded = load(config, os.environ, self.flags, self.constants)
            check(self.loaded.settings)
        except (usage.UsageError, SettingsError) as error:
            print(f"svcd: {error}", file=sys.stderr)
            raise SystemExit(2) from None

    def getUsage(self, width: int | None = None) -> str:
        """The flags, and every setting with its default and meaning."""
        text = super().getUsage(width)
        lines = ["", "Settings (--set, SVCD_SECTION_KEY, or [section] key in the file):"]
        for key, declared in schema().items():
            default = declared.default
            shown = ",".join(default) if isinstance(default, tuple) else str(default)
            lines.append(f"  {key:34} {declared.text} [{shown}]")
        return text + "\n".join(lines) + "\n"


class Startable(Protocol):
    """The service of a process. `start` raises StartError.

    The service may have a Deferred `broken`, which fails with StartError when the service cannot
    continue.
    """

    async def start(self) -> None: ...
    async def stop(self) -> None: ...


class _Root(MultiService):
    """Starts the daemon when twistd starts, and ends the process when that fails."""

    def __init__(
        self, daemon: Startable, observer: ILogObserver, warnings: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self._warnings = warnings
        self._daemon = daemon
        self._observer = observer
        self._core = cast("IReactorCore", _reactor)
        self._starting: Deferred[None] | None = None
        self._stopping = False

    def setServiceParent(self, parent: Any) -> None:
        """Set our log observer on the application, our parent, where twistd takes it from."""
        if isinstance(parent, Componentized):
            parent.setComponent(ILogObserver, self._observer)
        super().setServiceParent(parent)

    def startService(self) -> None:
        super().startService()
        self._core.callWhenRunning(self._begin)

    def stopService(self) -> Deferred[object]:
        return Deferred.fromCoroutine(self._end()).addErrback(self._badly_ended)

    def _begin(self) -> None:
        # Our own handlers: with its own ones twistd ends by the signal and not with exit code 0.
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        log.info("Starting, process {pid}", pid=os.getpid())
        for warning in self._warnings:
            log.warn("{text}", text=warning)
        self._starting = Deferred.fromCoroutine(self._daemon.start()).addErrback(self._failed)
        broken: Deferred[None] | None = getattr(self._daemon, "broken", None)
        if broken is not None:
            broken.addErrback(self._failed)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal must not interrupt the stop
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        cast("Any", _reactor).callFromThread(self._core.stop)

    def _failed(self, failure: Failure) -> None:
        if self._stopping:
            return
        text = " ".join(str(failure.value).split())
        if not failure.check(StartError):
            log.failure("Start failed", failure=failure)
            text = f"start failed: {failure.getErrorMessage()}"
        # twistd has replaced sys.stderr by its log
        print(f"svcd: {text}", file=sys.__stderr__, flush=True)
        _exit_with(2 if failure.check(SettingsRefused) else 1)
        self._core.stop()

    async def _end(self) -> object:
        log.info("Stopping")
        self._stopping = True
        try:
            if self._starting is not None:  # or the start would continue during the stop
                self._starting.cancel()
                await self._starting
            await self._daemon.stop()
        finally:
            await maybeDeferred(super().stopService)
        log.info("Stopped")
        return None

    def _badly_ended(self, failure: Failure) -> None:
        """Report the failed stop by the log and the exit code. The process ends all the same."""
        log.failure("Stop failed", failure=failure)
        _exit_with(1)


def _exit_with(code: int) -> None:
    """Make the process exit with `code`; twistd itself always exits with 0."""

    def leave() -> NoReturn:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    atexit.register(leave)


def _stream(options: usage.Options) -> IO[str]:
    """The stream for the log: twistd's --logfile, else stdout."""
    parent = getattr(options, "parent", None)
    name = parent.get("logfile") if parent is not None else None
    daemonized = parent is not None and not parent.get("nodaemon")
    if not name and daemonized:
        name = "twistd.log"
    if not name or name == "-":
        return unbuffered(sys.stdout)
    return unbuffered(Path(name).open("a", encoding="utf-8"))


def unbuffered(stream: IO[str]) -> IO[str]:
    """`stream` without a buffer: a failed write leaves no rest that later writes would send."""
    try:
        place = stream.fileno()
    except (AttributeError, OSError, ValueError):  # in memory, closed, or None
        return stream
    return _Kept(_Whole(place, "w", closefd=False), stream)


class _Whole(io.FileIO):
    """Writes all that it is given. A disk that becomes full takes a part, without an error."""

    def write(self, data: Any, /) -> int:
        """See RawIOBase. Raises OSError when something is left."""
        rest = memoryview(data).cast("B")
        while rest:
            written = super().write(rest)
            if written is None:
                raise BlockingIOError(errno.EAGAIN, "the file takes no more now")
            rest = rest[written:]
        return len(data)


class _Kept(io.TextIOWrapper):
    """UTF-8 text on the file of another stream. It keeps that stream open."""

    def __init__(self, whole: io.FileIO, owner: IO[str]) -> None:
        super().__init__(whole, encoding="utf-8", errors="backslashreplace", write_through=True)
        self._owner = owner


def make(options: Options, service: Callable[[Any, Loaded], Startable]) -> MultiService:
    """The service that twistd runs."""
    loaded = options.loaded
    if loaded is None:  # not parsed by twistd
        options.parseOptions([])
        loaded = cast("Loaded", options.loaded)
    observer = logs.observer(
        _stream(options), loaded.settings.log.format, loaded.settings.log.level
    )
    linecache.clearcache()  # attrs keeps the source of each class's methods there, for debuggers
    # Before the first timer: from here on a change of the wall clock moves no timer.
    reactor = cast("Any", _reactor)
    reactor.seconds = SteadyTime().seconds
    return _Root(service(reactor, loaded), observer, loaded.unknown)


@contextlib.contextmanager
def imports() -> Iterator[None]:
    """Keep the garbage collector from all that the daemon's modules make, while they are imported.

    It lives as long as the process, and each full collection would walk it. The collections of the
    start pass over it too; the service makes a full one once it is ready.
    """
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, _NEVER)
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(young, middle, old)


def makeService(options: Options) -> MultiService:
    """Make the service of `twistd svcd`, see IServiceMaker."""
    with imports():
        from svcd.service import DaemonService  # here, so that --help is quick

    return make(options, DaemonService)
