"""The interface to the machines behind the servers of the embedded cloud.

The cloud keeps the records (state, addresses, volumes) and decides; guests only act. The cloud may
repeat every call after a crash; the method then finds or finishes its former work.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import field, frozen


class GuestError(Exception):
    """A machine could not perform a call. args[0]: one line for the server's `fault`."""


class AddressTaken(GuestError):
    """Another program listens on an address of the machine; another address may be free."""

    def __init__(self, text: str, address: str) -> None:
        super().__init__(text)
        self.address = address


@frozen(kw_only=True)
class GuestSpec:
    """The values of a server that its machine needs.

    server_id: names the machine.
    name: host name.
    addresses: fixed address first, then floating ones.
    user_name: the login user (`_svc_username` of the image, else `svcd`).
    authorized_keys: public keys of the login user, in OpenSSH form.
    user_data: the script given at creation, decoded; empty when none.
    """

    server_id: str
    name: str
    addresses: tuple[str, ...]
    user_name: str
    authorized_keys: tuple[str, ...]
    user_data: bytes = field(default=b"", repr=False)


class Guests:
    """The machines. All methods raise GuestError, and are bounded in time.

    This class has no machines: everything succeeds at once. The in-process fake uses it so.
    """

    async def boot(self, spec: GuestSpec) -> None:
        """Make the machine reachable at its addresses, and at no others.

        Idempotent: adopts a running or known machine.
        """

    async def halt(self, server_id: str) -> None:
        """Stop the processes of a machine and keep its files."""

    async def destroy(self, server_id: str) -> None:
        """Stop the processes and delete the files of a machine. An unknown machine is no fault."""

    async def attach(self, server_id: str, volume_id: str, device: str) -> None:
        """Show the volume to the machine under `device` (for example /dev/vdb)."""

    async def detach(self, server_id: str, volume_id: str) -> None:
        """Detach the volume and keep its content. An unknown machine or volume is no fault."""

    async def destroy_volume(self, volume_id: str) -> None:
        """Delete the content of a volume. An unknown volume is no fault."""

    def occupied(self) -> Callable[[str], bool]:
        """Look once at this host. The result tells whether a program listens on an address."""
        return _never

    async def shutdown(self) -> None:
        """Prepare for the end of this process. The machines continue to run."""


def _never(address: str) -> bool:
    """No program uses the address."""
    return False
