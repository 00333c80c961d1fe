"""Makes an image in the cloud for `svcd image bake`: one server, its snapshot, the registration.

`svcd.cli.image_bake_plan` decides. A bake finds its objects again by name or metadata, so nothing
is kept on this machine, and the private key never leaves this process. At any end a bake
removes all its objects but the registered image.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

from attrs import evolve, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime

from svcd.cli import image_bake_plan as plan
from svcd.cli.exits import FAILED, INTERRUPTED, REFUSED, UNREACHABLE, CommandError
from svcd.cli.image_bake_objects import Objects, Services
from svcd.cli.image_bake_plan import Choice, Wanted
from svcd.cli.image_bake_tree import Tree
from svcd.cli.output import Terminal
from svcd.cli.times import duration
from svcd.model.cloud import FloatingIp, Image, NewServer, Opening, Server
from svcd.model.secret import Secret
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault, PortError
from svcd.ports.machines import CommandResult, Host, Remote, RemoteError
from svcd.provisioning.distributions.vanilla import server_image
from svcd.runtime.keys import new_key_pair
from svcd.runtime.tasks import Loop, sleep

T = TypeVar("T")

_BUILD_S: Final = 900.0
_LOGIN_S: Final = 600.0
_INSTALL_S: Final = 1800.0
_STEP_S: Final = 600.0
_STOP_S: Final = 300.0
_SAVE_S: Final = 7200.0
_BEAT_S: Final = 10.0
_QUIET_S: Final = 60.0
"""The pause between two looks for another bake: several beats."""
_POLL_S: Final = 2.0
_LINES: Final = 8
"""Number of last lines of a console, or of an output, that an error quotes."""
_MOST_SAID: Final = 600
"""Characters of these lines."""


@frozen
class Screen:
    """The progress. Its reader may end, as `| tee` at Ctrl-C; a removal continues without it."""

    terminal: Terminal

    def note(self, text: str) -> None:
        """A line for people."""
        with suppress(OSError):
            self.terminal.note(text)

    def draw(self, text: str) -> None:
        """Show a text in the place of the last drawn text."""
        with suppress(OSError):
            self.terminal.draw(text)


class Bake:
    """One bake of an image."""

    def __init__(
        self,
        cloud: Services,
        remote: Remote,
        clock: IReactorTime,
        wanted: Wanted,
        screen: Screen,
    ) -> None:
        self._cloud = cloud
        self._remote = remote
        self._clock = clock
        self._wanted = wanted
        self._screen = screen
        self._objects = Objects(cloud, clock, wanted.name)
        self._object = self._objects.name
        self._owner = False
        """Whether all objects of the name belong to this bake, which then removes them at last."""
        self._key = ""
        """The public key of a key pair that the cloud was asked for and may have made."""
        self._server_id = ""
        self._beats = 0
        self._stopped: CommandError | None = None
        self._stages: list[Deferred[Image] | Deferred[str]] = []

    async def run(self) -> Image:
        """The registered image. Raises CommandError, whose text names all remaining objects."""
        work = Deferred.fromCoroutine(self._made())
        self._stages.append(work)
        try:
            image = await work
        except Exception as error:  # also after a fault of svcd itself no object may be left
            told, left = self._told(error), ""
            if self._owner:
                what = told or type(error).__name__
                self._screen.note(f"removing what this bake has made: {what}")
                left = await self._removed("server", self._objects.remove(unfinished=True))
            elif self._key:
                left = await self._removed("key pair", self._objects.remove_keypair(self._key))
            if told is None:
                self._screen.note(left or "nothing is left in the cloud")
                raise
            raise CommandError("; ".join(filter(None, (str(told), left))), told.code) from None
        if left := await self._removed("server", self._objects.remove(unfinished=False)):
            raise CommandError(f"image {image.name} ({image.id}) is registered; {left}", FAILED)
        return image

    async def _removed(self, kind: str, work: Coroutine[Deferred[Any], Any, str]) -> str:
        """The removal, the stage after the work; a text about what is left, as of this kind."""
        removal = Deferred.fromCoroutine(work)
        self._stages.append(removal)
        try:
            return await removal
        except CancelledError:
            return plan.left_over({(kind, self._object): "interrupted"})

    def stop(self, error: CommandError) -> None:
        """End the work with `error`; at the second call also the removal that follows the work."""
        stage = 0 if self._stopped is None else -1
        self._stopped = self._stopped or error
        self._stages[stage].cancel()

    def _told(self, error: Exception) -> CommandError | None:
        """The error for the caller; None for a fault of svcd itself."""
        match self._stopped or error:
            case CommandError() as told:
                return told
            case PortError() as refusal:
                return CommandError(refusal.text, UNREACHABLE if refusal.passing else REFUSED)
            case CancelledError():
                return CommandError("interrupted", INTERRUPTED)
            case OSError() as fault:
                return CommandError(f"{fault.filename} cannot be read: {fault.strerror}")
        return None

    # ---- the work -------------------------------------------------------------------------------

    async def _made(self) -> Image:
        """The registered image; `run` removes the other objects."""
        match await self._first_step():
            case plan.Refuse(text, tidy):
                self._owner = tidy
                raise CommandError(text, REFUSED)
            case plan.Tidy(image_id):
                self._screen.note(f"image {self._wanted.name} is registered already")
                return await self._cloud.images.image(image_id)
            case plan.Continue(image_id):
                self._screen.note(f"continuing with image {image_id}, which has begun")
                self._owner = True
                return await self._beating(self._continued())
            case plan.Begin(tidy):
                return await self._begun(tidy)

    async def _first_step(self) -> plan.Step:
        """The step after at least two looks; see the note of the plan."""
        name = self._wanted.name
        before = now = await self._objects.look()
        end = self._clock.seconds() + _BUILD_S
        while now.leftovers:
            self._screen.note(
                f"found objects of a bake of {name}; looking for {duration(_QUIET_S)} whether it is"
                " at work"
            )
            await sleep(self._clock, _QUIET_S)
            before, now = now, await self._objects.look()
            if now.rests(before) or self._clock.seconds() >= end:
                break
        return plan.next_step(name, before, now)

    async def _begun(self, tidy: bool) -> Image:
        """A new image. tidy: after the removal of what a former bake has left."""
        tree, cloud = Tree.at(self._wanted.tree), self._cloud
        images, flavors = await cloud.images.images(), await cloud.compute.flavors()
        networks = await cloud.networks.networks()
        choice = plan.choice(self._wanted, images, flavors, networks, tree.mib)
        self._owner = tidy
        if tidy and await self._objects.remove(unfinished=True):
            raise CommandError("a former bake is in the way")
        self._owner = False  # until the cloud has given the key pair to this bake
        self._key, private = new_key_pair(self._object)
        try:
            await cloud.compute.create_keypair(self._object, self._key)
        except CloudError as error:
            if error.kind is not Fault.BUSY:
                raise
            self._key = ""
            text = f"another svcd image bake of {self._wanted.name} has just begun"
            raise CommandError(f"{text}: wait for its end", REFUSED) from None
        self._owner = True
        return await self._beating(self._baked(tree, choice, private))

    async def _continued(self) -> Image:
        """The registered image of a former bake, which is saved or being saved."""
        objects = await self._objects.look()
        self._server_id = objects.servers[0].id if objects.servers else ""
        users = [server.metadata.get(plan.LOGIN, "") for server in objects.servers]
        base = next(iter(objects.unfinished), None)
        inherited = "debian" if base is None else plan.login_user("", base)
        return await self._saved(self._wanted.user or next(iter(users), "") or inherited)

    async def _beating(self, work: Awaitable[T]) -> T:
        """The result of `work`, while the server's beats show other bakes that this one works."""

        async def beat() -> None:
            if self._server_id:
                self._beats += 1
                count = {plan.BEAT: str(self._beats)}
                try:
                    await self._cloud.compute.set_metadata(self._server_id, count)
                except CloudError:
                    return  # for example while the server builds: the next beat comes soon

        beats = Loop(self._clock, "beats of the bake", _BEAT_S, beat)
        beats.start(now=False)
        try:
            return await work
        finally:
            await beats.stop()

    async def _baked(self, tree: Tree, choice: Choice, private_key: Secret) -> Image:
        server = await self._boot(choice)
        host = Host(
            address=await self._address(server),
            port=choice.port,
            user=choice.user,
            private_key=private_key,
        )
        host = await self._logged_in(host, server)
        await self._on(host, "preparing the server", server_image.READY)
        await self._on(host, "checking the disk", server_image.room(tree.mib))
        await self._on(host, "installing packages", server_image.INSTALL, _INSTALL_S)
        await self._copy(host, tree)
        check = server_image.verify(tree.list_sha256, tree.hadoop)
        await self._on(host, "checking the software on the server", check)
        await self._on(host, "making class data", server_image.CLASS_DATA)
        await self._on(host, "cleaning the server", server_image.CLEAN)
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

        return await self._until("booting the server", _BUILD_S, running)

    async def _address(self, server: Server) -> str:
        """The address at which this machine reaches the server."""
        if not self._wanted.pool:
            return server.addresses[0][0]
        networks = self._cloud.networks
        floating = await networks.create_floating_ip(self._wanted.pool, self._object)

        async def bound() -> FloatingIp:
            await networks.associate_floating_ip(floating.id, server.id)
            return floating

        return (await self._until("binding the floating IP", _STOP_S, bound)).address

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
            key = await self._until("waiting for SSH", _LOGIN_S, answer)
        except CommandError as error:
            console = await self._cloud.compute.console(server.id, _LINES)
            said = f"; the end of its console: {_last_lines(console)}" if console.strip() else ""
            raise CommandError(
                f"{error}: {last}{said}; check the login (--user), and that this machine reaches"
                " the address (--network, --floating-network)",
                UNREACHABLE,
            ) from None
        return evolve(host, host_key=key)

    async def _copy(self, host: Host, tree: Tree) -> None:
        """Copy the software tree, piece by piece."""
        what, done = "copying the software", 0
        self._screen.note(f"{what} ({tree.mib} MiB) to {server_image.PREFIX}")
        await self._run(host, what, server_image.EMPTY)
        for size, archive in tree.archives():
            await self._run(host, what, server_image.UNPACK, content=archive)
            done += size
            self._screen.draw(f"{what}  {done >> 20} of {tree.mib} MiB")

    async def _stop(self, server: Server) -> None:
        compute = self._cloud.compute
        self._screen.note("stopping the server")
        await compute.stop_server(server.id)

        async def stopped() -> bool:
            return (await compute.server(server.id)).status == "SHUTOFF"

        await self._until("stopping the server", _STOP_S, stopped)

    async def _saved(self, user: str) -> Image:
        """The image with its registration, when the cloud has saved it."""
        wanted = self._wanted
        self._screen.note(f"saving image {wanted.name}; the cloud needs some minutes")

        async def saved() -> Image | None:
            images = await self._cloud.images.images(wanted.name)
            mine = [image for image in images if image.properties.get(plan.MARK) == plan.UNFINISHED]
            if not mine:
                raise CommandError(f"the cloud has lost image {wanted.name} while it saved it")
            if mine[0].status not in ("QUEUED", "SAVING", "ACTIVE"):
                text = f"the cloud could not save image {wanted.name}"
                raise CommandError(f"{text}: its status is {mine[0].status.lower()}")
            return mine[0] if mine[0].status == "ACTIVE" else None

        image = await self._until("saving the image", _SAVE_S, saved)
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
                if value := await look():
                    return value
            except CloudError as error:
                if not error.passing:
                    raise
                trouble = f": {error.text}"
            left_s = end - self._clock.seconds()
            if left_s <= 0:
                raise CommandError(f"{what} took longer than {duration(limit_s)}{trouble}")
            self._screen.draw(f"{what}  gives up in {duration(left_s)}")
            await sleep(self._clock, _POLL_S)

    async def _on(self, host: Host, what: str, script: str, limit_s: float = _STEP_S) -> None:
        self._screen.note(what)
        await self._run(host, what, script, limit_s)

    async def _run(
        self, host: Host, what: str, script: str, limit_s: float = _STEP_S, content: bytes = b""
    ) -> CommandResult:
        """Run a script on the server. Raises CommandError when it fails, RemoteError."""
        self._screen.draw(what)
        done = await self._remote.run(host, script, stdin=content, timeout_s=limit_s)
        if done.exit_code != 0:
            said = _last_lines(done.stderr) or _last_lines(done.stdout)
            raise CommandError(f"{what} failed: {said or f'exit code {done.exit_code}'}")
        return done


def _last_lines(text: str) -> str:
    """The last lines of a text, in one line."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-_LINES:])[-_MOST_SAID:]
