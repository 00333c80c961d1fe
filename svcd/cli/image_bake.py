"""Makes an image in the cloud for `svcd image bake`: one server, its snapshot, the registration.

`svcd.cli.image_bake_plan` decides. Every object is found again by its name or metadata, so nothing
is kept on this machine, and the private key never leaves this process. Whatever ends a bake before
the registration removes all that the bake has made.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol, TypeVar

from attrs import evolve, frozen
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime

from svcd.cli import image_bake_plan as plan
from svcd.cli.exits import FAILED, INTERRUPTED, REFUSED, UNREACHABLE, CommandError
from svcd.cli.image_bake_objects import Objects, Services
from svcd.cli.image_bake_plan import Choice, Wanted
from svcd.cli.image_bake_tree import Tree
from svcd.cli.times import duration
from svcd.model.cloud import FloatingIp, Image, NewServer, Opening, Server
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault, PortError
from svcd.ports.machines import CommandResult, Host, Remote, RemoteError
from svcd.provisioning.distributions.vanilla import server_image
from svcd.runtime.keys import new_key_pair
from svcd.runtime.tasks import Loop, sleep

T = TypeVar("T")

_LINES: Final = 8
"""Last lines of a console, or of a command's output, that an error quotes."""
_MOST_SAID: Final = 600
"""Characters of these lines."""


@frozen(kw_only=True)
class Limits:
    """The deadline of each wait, in seconds. beat_s, poll_s: intervals. quiet_s: several beats."""

    build_s: float = 900.0
    login_s: float = 600.0
    install_s: float = 1800.0
    step_s: float = 600.0
    stop_s: float = 300.0
    save_s: float = 7200.0
    remove_s: float = 300.0
    quiet_s: float = 60.0
    beat_s: float = 10.0
    poll_s: float = 2.0


class Screen(Protocol):
    """Where the progress goes: `note` writes a line, `draw` replaces the drawn text."""

    def note(self, text: str) -> None: ...
    def draw(self, text: str) -> None: ...


class Bake:
    """One bake. Its `run` raises CommandError; nothing is left then but what the text names."""

    def __init__(
        self,
        cloud: Services,
        remote: Remote,
        clock: IReactorTime,
        wanted: Wanted,
        screen: Screen,
        limits: Limits | None = None,
    ) -> None:
        self._cloud = cloud
        self._remote = remote
        self._clock = clock
        self._wanted = wanted
        self._screen = screen
        self._limits = limits or Limits()
        self._objects = Objects(cloud, clock, wanted.name)
        self._object = self._objects.name
        self._beats = 0
        self._server_id = ""
        self._removing = False
        self._stopped: CommandError | None = None

    def stop(self, error: CommandError) -> bool:
        """End the bake with `error`; whether its work must be cancelled for that.

        A removal goes on at the first call, so that nothing is left.
        """
        goes_on = self._removing and self._stopped is None
        self._stopped = error
        return not goes_on

    async def run(self) -> Image:
        """The registered image. Raises CommandError."""
        try:
            step = await self._first_step()
            match step:
                case plan.Refuse():
                    left = await self._remove(unfinished=True) if step.tidy else ""
                    raise CommandError("; ".join(filter(None, (step.text, left))), REFUSED)
                case plan.Tidy():
                    self._screen.note(f"image {self._wanted.name} is registered already")
                    image = await self._cloud.images.image(step.image_id)
                case plan.Continue():
                    self._screen.note(f"continuing with image {step.image_id}, which has begun")
                    image = await self._removed_on_failure(self._continued())
                case plan.Begin():
                    image = await self._begun(step.tidy)
        except PortError as error:
            raise _command_error(error) from None
        except CancelledError:
            raise self._interrupted() from None
        if left := await self._remove(unfinished=False):
            raise CommandError(f"image {image.name} ({image.id}) is registered; {left}", FAILED)
        return image

    # ---- the plan -------------------------------------------------------------------------------

    async def _first_step(self) -> plan.Step:
        """The step after two looks or more; see the note of the plan."""
        name, limits = self._wanted.name, self._limits
        before = now = await self._objects.look()
        end = self._clock.seconds() + limits.build_s
        while now.leftovers:
            self._screen.note(
                f"found objects of a bake of {name}; looking for"
                f" {duration(limits.quiet_s)} whether it is at work"
            )
            await sleep(self._clock, limits.quiet_s)
            before, now = now, await self._objects.look()
            if now.rests(before) or self._clock.seconds() >= end:
                break
        return plan.next_step(name, before, now)

    async def _choice(self, tree_mib: int) -> Choice:
        """What the arguments name. Raises CommandError."""
        cloud = self._cloud
        images, flavors = await cloud.images.images(), await cloud.compute.flavors()
        networks = await cloud.networks.networks()
        return plan.choice(self._wanted, images, flavors, networks, tree_mib)

    # ---- the work -------------------------------------------------------------------------------

    async def _remove(self, unfinished: bool) -> str:
        """Remove the objects of the bake; see `Objects.remove`."""
        limits = self._limits
        with self._removal():
            return await self._objects.remove(unfinished, limits.remove_s, limits.poll_s)

    @contextmanager
    def _removal(self) -> Iterator[None]:
        """A removal, which goes on at the first call of `stop`."""
        self._removing = True
        try:
            yield
        finally:
            self._removing = False

    def _interrupted(self) -> CommandError:
        return self._stopped or CommandError("interrupted", INTERRUPTED)

    async def _begun(self, tidy: bool) -> Image:
        """A new image. tidy: after the removal of what a former bake has left."""
        tree = Tree.at(self._wanted.tree)
        choice = await self._choice(tree.mib)
        if tidy and (left := await self._remove(unfinished=True)):
            raise CommandError(f"a former bake is in the way; {left}")
        if self._stopped is not None:
            raise self._stopped
        private = await self._make_keypair()
        return await self._removed_on_failure(self._made(tree, choice, private))

    async def _removed_on_failure(self, work: Awaitable[T]) -> T:
        """The result of `work`, which beats; its failure removes all that the bake has made."""
        beats = Loop(self._clock, "beats of the bake", self._limits.beat_s, self._beat)
        beats.start(now=False)
        try:
            made = await work
        except Exception as error:  # also a fault of svcd itself: nothing may be left then either
            known = self._known(error)
            self._screen.note(f"removing what this bake has made: {known or type(error).__name__}")
            await beats.stop()
            left = await self._remove(unfinished=True)
            if known is None:
                self._screen.note(left or "nothing is left in the cloud")
                raise
            raise CommandError("; ".join(filter(None, (str(known), left))), known.code) from None
        await beats.stop()
        return made

    def _known(self, error: Exception) -> CommandError | None:
        """The error for the caller; None for a fault of svcd itself."""
        match error:
            case CommandError():
                return error
            case PortError():
                return _command_error(error)
            case CancelledError():
                return self._interrupted()
            case OSError():
                return CommandError(f"{error.filename} cannot be read: {error.strerror}")
            case _:
                return None

    async def _beat(self) -> None:
        """Count up the beats of the server, so that no other bake takes it for a leftover."""
        if not self._server_id:
            return
        self._beats += 1
        try:
            beat = {plan.BEAT: str(self._beats)}
            await self._cloud.compute.set_metadata(self._server_id, beat)
        except CloudError:
            return  # as while the server builds: the next beat comes soon

    async def _make_keypair(self) -> Host:
        """Make the key pair; a login without address. Raises CommandError for a second bake."""
        public, private = new_key_pair(self._object)
        try:
            await self._cloud.compute.create_keypair(self._object, public)
        except (CloudError, CancelledError) as error:
            if isinstance(error, CloudError) and error.kind is Fault.BUSY:
                text = f"another svcd image bake of {self._wanted.name} has just begun"
                raise CommandError(f"{text}: wait for its end", REFUSED) from None
            known = _command_error(error) if isinstance(error, CloudError) else self._interrupted()
            with self._removal():
                left = await self._objects.remove_keypair(public)  # the cloud may have made it
            raise CommandError("; ".join(filter(None, (str(known), left))), known.code) from None
        return Host(address="", port=22, user="", private_key=private)

    async def _made(self, tree: Tree, choice: Choice, login: Host) -> Image:
        server = await self._boot(choice)
        address = await self._address(server)
        host = evolve(login, address=address, port=choice.port, user=choice.user)
        host = await self._logged_in(host, server)
        limits, step_s = self._limits, self._limits.step_s
        await self._on(host, "preparing the server", server_image.READY, step_s)
        await self._on(host, "checking the disk", server_image.room(tree.mib), step_s)
        await self._on(host, "installing packages", server_image.INSTALL, limits.install_s)
        await self._copy(host, tree)
        check = server_image.verify(tree.list_sha256, tree.hadoop)
        await self._on(host, "checking the software on the server", check, step_s)
        await self._on(host, "making class data", server_image.CLASS_DATA, step_s)
        await self._on(host, "cleaning the server", server_image.CLEAN, step_s)
        self._remote.forget(host)
        await self._stop(server)
        mark = {plan.MARK: plan.UNFINISHED}
        await self._cloud.compute.create_image(server.id, self._wanted.name, mark)
        return await self._saved(choice.user)

    async def _boot(self, choice: Choice) -> Server:
        """The running server, in a security group of its own."""
        cloud, wanted = self._cloud, self._wanted
        self._screen.note(f"booting a server from {choice.base.name} ({self._object})")
        openings = [Opening(choice.port, cidr) for cidr in wanted.cidrs]
        text = f"svcd image bake of {wanted.name}"
        group_id = await cloud.networks.create_security_group(self._object, text, openings)
        new = NewServer(
            name=self._object,
            image_id=choice.base.id,
            flavor_id=choice.flavor_id,
            keypair=self._object,
            security_groups=(group_id,),
            metadata={plan.MARK: wanted.name, plan.BEAT: "0", plan.LOGIN: choice.user},
        )
        self._server_id = server_id = await cloud.compute.create_server(new, choice.network_id)

        async def running() -> Server | None:
            server = await cloud.compute.server(server_id)
            if server.status == "ERROR":
                why = server.fault or "the cloud gives no reason"
                raise CommandError(f"the server did not boot: {why}")
            return server if server.status == "ACTIVE" and server.addresses else None

        return await self._until("booting the server", self._limits.build_s, running)

    async def _address(self, server: Server) -> str:
        """The address at which this machine reaches the server."""
        if not self._wanted.pool:
            return server.addresses[0][0]
        networks = self._cloud.networks
        made = await networks.create_floating_ip(self._wanted.pool, self._object)

        async def bound() -> FloatingIp:
            await networks.associate_floating_ip(made.id, server.id)
            return made

        await self._until("binding the floating IP", self._limits.stop_s, bound)
        return made.address

    async def _logged_in(self, host: Host, server: Server) -> Host:
        """The login with the pinned host key, when the server answers on SSH."""
        last = ""

        async def answer() -> str | None:
            nonlocal last
            try:
                return (await self._remote.run(host, "true", timeout_s=20.0)).host_key
            except RemoteError as error:
                if error.kind is Fault.FORBIDDEN:
                    raise
                last = error.text
                return None

        try:
            key = await self._until("waiting for SSH", self._limits.login_s, answer)
        except CommandError as error:
            console = await self._cloud.compute.console(server.id, _LINES)
            said = f"; the end of its console: {_end(console)}" if console.strip() else ""
            raise CommandError(
                f"{error}: {last}{said}; check the login (--user), and that this machine reaches"
                " the address (--network, --floating-network)",
                UNREACHABLE,
            ) from None
        return evolve(host, host_key=key)

    async def _copy(self, host: Host, tree: Tree) -> None:
        """Copy the software tree, piece by piece."""
        self._screen.note(f"copying the software ({tree.mib} MiB) to {server_image.PREFIX}")
        await self._run(host, "copying the software", server_image.EMPTY, self._limits.step_s)
        done = 0
        for size, archive in tree.archives():
            what, step_s = "copying the software", self._limits.step_s
            await self._run(host, what, server_image.UNPACK, step_s, archive)
            done += size
            self._screen.draw(f"copying the software  {done >> 20} of {tree.mib} MiB")

    async def _stop(self, server: Server) -> None:
        compute = self._cloud.compute
        self._screen.note("stopping the server")
        await compute.stop_server(server.id)

        async def stopped() -> bool:
            return (await compute.server(server.id)).status == "SHUTOFF"

        await self._until("stopping the server", self._limits.stop_s, stopped)

    async def _continued(self) -> Image:
        """The registered image of a former bake, which is saved or being saved."""
        found = await self._objects.look()
        self._server_id = found.servers[0].id if found.servers else ""
        users = [each.metadata.get(plan.LOGIN, "") for each in found.servers]
        base = next(iter(found.unfinished), None)
        inherited = "debian" if base is None else plan.login_user("", base)
        return await self._saved(self._wanted.user or next(iter(users), "") or inherited)

    async def _saved(self, user: str) -> Image:
        """The image with its registration, when the cloud has saved it."""
        wanted = self._wanted
        self._screen.note(f"saving image {wanted.name}; the cloud needs some minutes")

        async def saved() -> Image | None:
            images = await self._cloud.images.images(wanted.name)
            mine = [each for each in images if each.properties.get(plan.MARK) == plan.UNFINISHED]
            if not mine:
                raise CommandError(f"the cloud has lost image {wanted.name} while it saved it")
            if mine[0].status not in ("QUEUED", "SAVING", "ACTIVE"):
                text = f"the cloud could not save image {wanted.name}"
                raise CommandError(f"{text}: its status is {mine[0].status.lower()}")
            return mine[0] if mine[0].status == "ACTIVE" else None

        image = await self._until("saving the image", self._limits.save_s, saved)
        given, gone = plan.registration(image, user, wanted.description, wanted.tags)
        return await self._cloud.images.change(image.id, given, gone)

    # ---- waits and commands ---------------------------------------------------------------------

    async def _until(self, what: str, limit_s: float, look: Callable[[], Awaitable[T | None]]) -> T:
        """The first true value of `look`. Raises CommandError after the deadline.

        A passing fault of the cloud does not end the wait.
        """
        end = self._clock.seconds() + limit_s
        trouble = ""
        while True:
            try:
                if found := await look():
                    return found
            except CloudError as error:
                if not error.passing:
                    raise
                trouble = f": {error.text}"
            left_s = end - self._clock.seconds()
            if left_s <= 0:
                raise CommandError(f"{what} took longer than {duration(limit_s)}{trouble}")
            self._screen.draw(f"{what}  gives up in {duration(left_s)}")
            await sleep(self._clock, self._limits.poll_s)

    async def _on(self, host: Host, what: str, script: str, limit_s: float) -> None:
        self._screen.note(what)
        await self._run(host, what, script, limit_s)

    async def _run(
        self, host: Host, what: str, script: str, limit_s: float, content: bytes = b""
    ) -> CommandResult:
        """Run a script on the server. Raises CommandError when it fails, RemoteError."""
        self._screen.draw(what)
        done = await self._remote.run(host, script, stdin=content, timeout_s=limit_s)
        if done.exit_code != 0:
            said = _end(done.stderr) or _end(done.stdout) or f"exit code {done.exit_code}"
            raise CommandError(f"{what} failed: {said}")
        return done


def _end(text: str) -> str:
    """The last lines of a text, in one line."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-_LINES:])[-_MOST_SAID:]


def _command_error(error: PortError) -> CommandError:
    return CommandError(error.text, UNREACHABLE if error.passing else REFUSED)
