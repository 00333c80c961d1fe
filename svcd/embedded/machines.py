"""Loopback machines: the servers of the embedded cloud as folders, processes and SSH servers.

Implements `Guests`. A machine's processes outlive this daemon: a boot of a known machine listens
again on its addresses and starts nothing anew. Only `halt`, `destroy` and `reconcile` end any.
"""

from __future__ import annotations

import errno
import ipaddress
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final

from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IListeningPort, IReactorTime
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.utils import getProcessOutputAndValue
from twisted.logger import Logger
from twisted.python.failure import Failure

from svcd.embedded.cloud.guests import GuestError, Guests, GuestSpec
from svcd.embedded.machine_addresses import HostAddresses
from svcd.embedded.machine_files import MachineFiles, is_safe_name, safe_name
from svcd.embedded.machine_limits import Count
from svcd.embedded.machine_ssh import Door, Server
from svcd.embedded.process_marks import marked
from svcd.embedded.processes import end, session_leader
from svcd.runtime import open_files
from svcd.runtime.tasks import DeadlineExceeded, sleep, with_deadline

log = Logger()

_HALT_GRACE_S: Final = 10.0
"""Time from SIGTERM to SIGKILL when a machine halts."""
_HALT_LIMIT_S: Final = 20.0
"""Deadline of a halt."""
_KILL_LIMIT_S: Final = 10.0
"""Deadline for killing the processes of a machine."""
_REMOVE_LIMIT_S: Final = 60.0
"""Deadline for removing a folder."""
_REMOVALS: Final = 5
_SCRIPT: Final = 'cd "$HOME" && exec "$0" >"$1" 2>&1 </dev/null'


class LoopbackMachines(Guests):
    """All machines under `root` (`machines/<server id>`, `volumes/<volume id>`).

    reactor: IReactorTCP and IReactorProcess; ssh_port: every machine listens on it, on its own
    addresses; image_prefix: software tree that the machines share; environ: of the daemon, for
    PATH. `reconcile` ends machines and processes without a server.
    """

    def __init__(
        self,
        reactor: Any,
        clock: IReactorTime,
        root: Path,
        ssh_port: int,
        image_prefix: Path,
        environ: Mapping[str, str],
    ) -> None:
        self._reactor = reactor
        self._clock = clock
        self._root = root.absolute()
        self._ssh_port = ssh_port
        self._image_prefix = image_prefix.absolute()
        self._environ = dict(environ)
        self._machines: dict[str, _Machine] = {}
        self._files = Count(open_files.for_machines())
        self._addresses = HostAddresses(clock, ssh_port)

    def folder(self, server_id: str) -> Path:
        """The machine's folder, which stands for its "/"."""
        return self._root / "machines" / safe_name(server_id, "server")

    async def boot(self, spec: GuestSpec) -> None:
        """See Guests. Raises GuestError: an address or the folder cannot be used."""
        files = MachineFiles(root=self.folder(spec.server_id), spec=spec)
        first = files.prepare()
        machine = self._machines.get(spec.server_id)
        if machine is None:
            machine = _Machine(self, files)
            self._machines[spec.server_id] = machine
        machine.files = files
        for address in [a for a in machine.ports if a not in spec.addresses]:
            await machine.leave(address)
        before = set(machine.ports)
        try:
            for address in spec.addresses:
                machine.listen(address)
        except GuestError:
            for address in machine.ports.keys() - before:
                await machine.leave(address)
            if not before:
                await self._disconnect(spec.server_id)
            raise
        if first:
            self._run_user_data(machine)
            files.mark_booted()  # after the script, so that a kill in between repeats it
        log.info(
            "Machine {name} {how} at {addresses}",
            name=spec.name,
            how="started" if first else "answers",
            addresses=", ".join(spec.addresses),
        )

    async def halt(self, server_id: str) -> None:
        """See Guests. SIGTERM, and SIGKILL after 10 s."""
        await self._disconnect(server_id)
        folder = self.folder(server_id)
        left = await end(self._reactor, folder, grace_s=_HALT_GRACE_S, limit_s=_HALT_LIMIT_S)
        if left:
            raise GuestError(f"machine {server_id}: processes {list(left)} do not end")

    async def destroy(self, server_id: str) -> None:
        """See Guests. SIGKILL at once; bounded to some 70 s, usually a tenth of one."""
        folder = self.folder(server_id)
        await self._disconnect(server_id)
        left = await end(self._reactor, folder, grace_s=0.0, limit_s=_KILL_LIMIT_S)
        if left:
            raise GuestError(f"machine {server_id}: processes {list(left)} cannot be killed")
        await self._remove(folder)

    async def attach(self, server_id: str, volume_id: str, device: str) -> None:
        """See Guests. The size of a volume is not enforced.

        The next start of the daemon attaches volumes again, and programs use their files meanwhile.
        So the device is there at every moment.
        """
        volume = self._root / "volumes" / safe_name(volume_id, "volume")
        shown = self.folder(server_id) / "dev" / safe_name(Path(device).name, "device")
        draft = shown.with_name(f".{shown.name}")
        try:
            volume.mkdir(parents=True, exist_ok=True)
            if shown.is_symlink() and shown.readlink() == volume:
                return
            draft.unlink(missing_ok=True)
            draft.symlink_to(volume, target_is_directory=True)
            draft.replace(shown)
        except OSError as error:
            raise GuestError(f"volume {volume_id} on {server_id}: {error.strerror}") from None

    async def detach(self, server_id: str, volume_id: str) -> None:
        """See Guests."""
        volume = self._root / "volumes" / safe_name(volume_id, "volume")
        devices = self.folder(server_id) / "dev"
        for shown in devices.iterdir() if devices.is_dir() else ():
            if shown.is_symlink() and shown.readlink() == volume:
                shown.unlink(missing_ok=True)

    async def destroy_volume(self, volume_id: str) -> None:
        """See Guests."""
        await self._remove(self._root / "volumes" / safe_name(volume_id, "volume"))

    def occupied(self) -> Callable[[str], bool]:
        """See Guests."""
        return self._addresses.occupied()

    async def reconcile(self, known_server_ids: Collection[str]) -> None:
        """Destroy the machines, and end the stray processes, that no known server owns."""
        parent = self._root / "machines"
        ids = {path.name for path in parent.iterdir()} if parent.is_dir() else set()
        ids |= {Path(root).name for _, root in marked() if Path(root).parent == parent}
        for server_id in sorted(name for name in ids if is_safe_name(name)):
            if server_id in known_server_ids:
                continue
            log.warn("Machine {id} belongs to no server and was removed", id=server_id)
            await self.destroy(server_id)

    async def shutdown(self) -> None:
        """See Guests: stop listening; processes continue."""
        if self._machines:
            log.info(
                "Machines of the embedded cloud that continue to run: {count}; the next start finds"
                " them, svcd machines rm {state} ends them without it",
                count=len(self._machines),
                state=self._root.parent,
            )
        for server_id in list(self._machines):
            await self._disconnect(server_id)

    def connections(self, server_id: str) -> int:
        """Open SSH connections of the machine."""
        machine = self._machines.get(server_id)
        return machine.connections() if machine is not None else 0

    def abort_connections(self, server_id: str) -> None:
        """Break the machine's SSH connections, for tests."""
        machine = self._machines.get(server_id)
        if machine is not None:
            machine.abort_connections()

    # -- inside -------------------------------------------------------------------------------

    def server(self, machine: _Machine) -> Server:
        """A fresh SSH server for `machine`. Raises GuestError."""
        key = machine.files.host_key()
        return Server(self._reactor, self._clock, key, machine.door, self._files)

    def bind(self, address: str, server: Server) -> IListeningPort:
        """Listen on `address`. Raises GuestError."""
        where = f"{address}:{self._ssh_port}"
        try:
            if not ipaddress.ip_address(address).is_loopback:
                raise GuestError(f"{address} is no loopback address (see embedded.network)")
            port: IListeningPort = self._reactor.listenTCP(
                self._ssh_port, server, interface=address
            )
        except ValueError:
            raise GuestError(f"{address!r} is no address") from None
        except CannotListenError as error:
            if getattr(error.socketError, "errno", None) == errno.EADDRINUSE:
                raise self._addresses.conflict(address) from None
            raise GuestError(_why(where, error.socketError)) from None
        return port

    def environment(self, files: MachineFiles) -> dict[str, str]:
        return files.environment(self._environ, self._image_prefix)

    async def _disconnect(self, server_id: str) -> None:
        machine = self._machines.pop(server_id, None)
        if machine is not None:
            await machine.close()

    def _run_user_data(self, machine: _Machine) -> None:
        said = str(machine.files.user_data_log)
        try:
            script = machine.files.first_boot_script()
            if script is None:
                return
            session_leader(
                self._reactor,
                _UserData(machine.files.spec.name, said),
                machine.door().environment,
                _SCRIPT,
                str(script),
                said,
            )
        except OSError as error:
            raise GuestError(f"user data cannot be started: {error.strerror}") from None

    async def _remove(self, path: Path) -> None:
        """Remove a folder by another process; one that was just ended may still close its files."""
        said = b""
        for attempt in range(_REMOVALS):
            if not _there(path):
                return
            if attempt:
                await sleep(self._clock, 0.1 * attempt)
            work = getProcessOutputAndValue(
                "/bin/rm",
                ["-rf", "--", str(path)],
                env={},
                path=None,
                reactor=self._reactor,
            )  # type: ignore[no-untyped-call]
            try:
                _, said, _ = await with_deadline(
                    self._clock, _REMOVE_LIMIT_S, f"removing {path}", work
                )
            except DeadlineExceeded:
                raise GuestError(
                    f"{path} was not removed within {_REMOVE_LIMIT_S:g} s: remove it by hand"
                ) from None
        if _there(path):
            last = said.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise GuestError(f"{path} cannot be removed ({last}): remove it by hand")


class _Machine:
    """One running machine: its files and listeners."""

    def __init__(self, owner: LoopbackMachines, files: MachineFiles) -> None:
        self._owner = owner
        self.files = files
        self.ports: dict[str, IListeningPort] = {}
        self._server: Server | None = None

    def door(self) -> Door:
        """The user and the keys that the SSH server accepts now."""
        return Door(
            user=self.files.spec.user_name,
            addresses=tuple(self.ports),
            authorized=self.files.authorized_keys,
            environment=self._owner.environment(self.files),
        )

    def listen(self, address: str) -> None:
        """Idempotent. Raises GuestError."""
        if self._server is None:
            self._server = self._owner.server(self)
        if address not in self.ports:
            self.ports[address] = self._owner.bind(address, self._server)

    async def leave(self, address: str) -> None:
        """Stop listening on `address`; connections stay."""
        port = self.ports.pop(address, None)
        if port is not None:
            await _stopped(port)

    async def close(self) -> None:
        """Stop listening, drop all connections."""
        for address in list(self.ports):
            await self.leave(address)
        self.abort_connections()

    def connections(self) -> int:
        return len(self._server.connections) if self._server is not None else 0

    def abort_connections(self) -> None:
        """Drop all connections; commands in progress are killed."""
        if self._server is not None:
            self._server.abort_connections()


class _UserData(ProcessProtocol):
    """The first-boot script; its output goes to a file."""

    def __init__(self, name: str, said: str) -> None:
        self._name = name
        self._said = said

    def processEnded(self, reason: Failure) -> None:
        outcome = reason.value
        if getattr(outcome, "exitCode", None) == 0:
            log.info("User data of machine {name} ended", name=self._name)
        else:
            log.warn(
                "User data of machine {name} failed ({outcome}), see {said}",
                name=self._name,
                outcome=str(outcome),
                said=self._said,
            )


def _there(path: Path) -> bool:
    return path.exists()


async def _stopped(port: IListeningPort) -> None:
    waiting = port.stopListening()
    if waiting is not None:
        await waiting


def _why(where: str, fault: BaseException) -> str:
    number = getattr(fault, "errno", None)
    if number == errno.EADDRNOTAVAIL:
        return (
            f"cannot listen on {where}: this system does not answer on that address."
            " Set embedded.network to one that it has (on macOS: ifconfig lo0 alias ADDRESS)"
        )
    if number == errno.EACCES:
        return f"cannot listen on {where}: not permitted. Set embedded.ssh_port above 1023"
    return f"cannot listen on {where}: {fault}"
