"""Commands on the machines of one cluster, with its secrets masked. Decides nothing."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from svcd.model.cluster import Cluster, Instance
from svcd.model.cluster_token import ClusterTokens, inserted
from svcd.model.ids import InstanceId
from svcd.model.redaction import all_forms, named_in, without_forms
from svcd.model.secret import Secret
from svcd.ports.machines import CommandResult, Host, Location, Remote, login, reachable, ways_of
from svcd.ports.store import Sealer
from svcd.provisioning.decide import shell
from svcd.provisioning.distributions.spi import WriteFile
from svcd.runtime.waits import Gate


class Shells:
    """Runs commands on the machines of one cluster, at most `at_once` at a time.

    key: the private management key. token: see `svcd.model.cluster_token`.
    """

    @classmethod
    def of(cls, remote: Remote, sealer: Sealer, cluster: Cluster, at_once: int) -> Shells:
        """The shells of a cluster, whose row has the sealed key."""
        key = sealer.open(cluster.management_private_key)
        token = ClusterTokens(sealer.digest).of(cluster.tenant_id, cluster.id)
        return cls(remote, cluster, key, token, at_once)

    def __init__(
        self, remote: Remote, cluster: Cluster, key: Secret, token: Secret, at_once: int
    ) -> None:
        self._remote = remote
        self.cluster = cluster
        self._key = key
        self._token = token
        self._gate = Gate(at_once)
        self._instances = {i.instance_id: i for i in cluster.instances()}
        self._masked: Sequence[str] | None = None
        self._ways = ways_of(cluster, key)

    def instance(self, instance_id: InstanceId) -> Instance:
        """The instance of the row with this id."""
        return self._instances[instance_id]

    def name(self, instance_id: InstanceId) -> str:
        """The name of the instance for texts; the id of an unknown instance."""
        known = self._instances.get(instance_id)
        return known.instance_name if known is not None else instance_id

    def host(self, instance_id: InstanceId) -> Host:
        """The login of the machine."""
        return login(self.cluster, self._instances[instance_id], self._key)

    def at(self, url: str) -> Location:
        """The location of a URL of the distribution, on a machine or elsewhere."""
        return reachable(url, self._ways) or Location(url)

    async def run(
        self, instance_id: InstanceId, command: str, *, stdin: bytes = b"", timeout_s: float
    ) -> CommandResult:
        """The result of a command of the login user, with secrets of the cluster's options masked.

        Raises RemoteError.
        """
        host = self.host(instance_id)
        async with self._gate:
            result = await self._remote.run(host, command, stdin=stdin, timeout_s=timeout_s)
        if not result.stdout and not result.stderr:
            return result
        if self._masked is None:  # once for all machines of a cluster
            self._masked = all_forms([*named_in(self.cluster.options()), self._token])
        stdout, stderr = (without_forms(t, self._masked) for t in (result.stdout, result.stderr))
        return evolve(result, stdout=stdout, stderr=stderr)

    async def work(
        self, instance_id: InstanceId, script: str, *, stdin: bytes = b"", timeout_s: float
    ) -> CommandResult:
        """The same for a script of a distribution: its system user runs it."""
        user = self.cluster.own_user(self._instances[instance_id])
        command = shell.as_user(user, script) if user else script
        return await self.run(instance_id, command, stdin=stdin, timeout_s=timeout_s)

    def filled(self, file: WriteFile) -> WriteFile:
        """`file` as it is written: with the token of the cluster, if it has it."""
        if not file.token:
            return file
        return evolve(file, content=inserted(file.content, self._token), mode=file.mode & 0o700)

    def forget(self, instance_id: InstanceId) -> None:
        """Drop the pooled connection, if any."""
        self._remote.forget(self.host(instance_id))
