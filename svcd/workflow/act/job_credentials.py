"""Creates the application credentials of jobs, and deletes them after the ends of the jobs.

`decide.job_credentials` says which and when. The end of an execution deletes them; a sweep deletes
what crashes and faults have left. Both are safe to repeat, at any number of daemons.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from attrs import evolve
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.model.failures import Code
from svcd.model.ids import ExecutionId, iso_seconds, seconds_of
from svcd.model.job import Credentials, Execution
from svcd.model.job_credential import JobCredential
from svcd.ports.cloud import ApplicationCredentials, CloudError
from svcd.ports.faults import Fault
from svcd.ports.lease import Lease
from svcd.ports.store import Store, Tx
from svcd.runtime.tasks import Loop, gather
from svcd.workflow.act.rows import Rows
from svcd.workflow.decide import job_credentials as decide
from svcd.workflow.decide import lifecycle
from svcd.workflow.decide.job_credentials import Login, Logins, Refused
from svcd.workflow.decide.material import Material

log = Logger()

_AT_ONCE: Final = 4
"""Application credentials that one turn deletes in parallel."""
_LIMIT: Final = 1000
"""Rows that one turn reads."""


class JobCredentials:
    """Application credentials of jobs.

    cloud: None when jobs get the passwords of their accounts (`cloud.job_credentials`). What was
    created before that setting then stays until its end. life_s: of an application credential.
    """

    def __init__(
        self,
        *,
        store: Store,
        rows: Rows,
        cloud: ApplicationCredentials | None,
        clock: IReactorTime,
        lease: Lease,
        installation: str,
        life_s: float,
    ) -> None:
        self._store = store
        self._rows = rows
        self._cloud = cloud
        self._clock = clock
        self._installation = installation
        self._life_s = life_s
        name = "application credentials of jobs"
        self._loop = Loop(clock, name, decide.LOOK_S, self._turn, lease)

    def start(self) -> None:
        self._loop.start(now=False)

    def wake(self) -> None:
        """Begin a turn of the sweep now."""
        self._loop.wake()

    async def stop(self) -> None:
        await self._loop.stop()

    # ---- before a job ----

    def samples(self, material: Material) -> Logins:
        """Logins that are as long as those of a start, for a check of the definition."""
        return {} if self._cloud is None else decide.samples((material.input, material.output))

    async def obtain(self, row: Execution, material: Material) -> Logins | None:
        """The logins of a start of `row`; None when the execution has ended. Raises CloudError."""
        if self._cloud is None:
            return {}
        now = self._clock.seconds()
        sources = (material.input, material.output)
        wanted = decide.wanted(row, sources, self._installation, now, self._life_s)
        if not wanted:
            return {}
        noted = await self._store.tx(lambda tx: self._note(tx, row.id, wanted))
        logins: dict[Credentials, Login | Refused] = {}
        for credential, is_new in noted:
            login = await self._login(self._cloud, credential, is_new)
            if login is None:
                return None
            logins[credential.account] = login
        return logins if noted else None

    async def _note(
        self, tx: Tx, id_: ExecutionId, wanted: Sequence[JobCredential]
    ) -> Sequence[tuple[JobCredential, bool]]:
        """Write the records that are not there; return all, or none when `id_` has ended.

        Each has a flag: the record is new, so no request has used its name before.
        """
        if not await _is_open(tx, id_):
            return []
        known = {
            credential.name: credential for credential in await tx.job_credentials.of_execution(id_)
        }
        noted = []
        for credential in wanted:
            before = known.get(credential.name)
            if before is not None and decide.is_usable(before, credential):
                noted.append((before, False))
                continue
            if before is None:
                await tx.job_credentials.add(credential)
                noted.append((credential, True))
                continue
            new = evolve(credential, again=before.again or before.made is None)
            await tx.job_credentials.save(new)
            noted.append((new, False))
        return noted

    async def _login(
        self, cloud: ApplicationCredentials, row: JobCredential, is_new: bool
    ) -> Login | Refused | None:
        """The login by `row`. Raises CloudError.

        None when its execution has ended meanwhile, or when a later start has taken the record: a
        cancelled start still writes what it has sent to the database. The record stays after a
        fault, unless no request can have created anything by its name.
        """
        if row.made is not None:
            return decide.login_of(row, row.made)
        ends = seconds_of(row.expires_at)
        try:
            created = await cloud.create_application_credential(
                row.tenant_id, row.account, row.name, ends
            )
        except CloudError as error:
            if is_new and error.kind not in decide.UNSURE:
                await self._store.tx(lambda tx: tx.job_credentials.forget(row.name))
            if error.kind is not Fault.UNAUTHORIZED:
                raise
            log.warn(
                "Execution {id} starts without a login: {why}", id=row.execution_id, why=error.text
            )
            return Refused(text=error.text)
        confirmed = evolve(row, made=created)

        async def confirm(tx: Tx) -> tuple[bool, bool]:
            """Two flags: the record is still of this start, or gone; the record was saved."""
            known = await tx.job_credentials.of_execution(row.execution_id)
            is_own = row in known or row.name not in {credential.name for credential in known}
            return is_own, (
                is_own
                and await _is_open(tx, row.execution_id)
                and await tx.job_credentials.save(confirmed)
            )

        is_own, saved = await self._store.tx(confirm)
        if saved:
            return decide.login_of(row, created)
        if is_own:
            await self._delete(confirmed)
        return None

    # ---- after a job ----

    async def give_back(self, id_: ExecutionId) -> None:
        """Delete the credentials of an ended execution. The sweep repeats it after a fault."""
        for row in await self._store.read(lambda tx: tx.job_credentials.of_execution(id_)):
            await self._delete(row)

    async def _turn(self) -> None:
        rows = await self._store.read(lambda tx: tx.job_credentials.loose(_LIMIT))
        now = self._clock.seconds()
        work = [partial(self._delete, row) for row in rows if decide.is_due(row, now)]
        for failure in await gather(work, _AT_ONCE):
            if failure is not None:
                raise failure

    async def _delete(self, row: JobCredential) -> None:
        """Delete an application credential, and write the result."""
        after: JobCredential | None
        try:
            existed = await self._deleted(row)
        except CloudError as error:
            refused = error.kind is Fault.UNAUTHORIZED
            after = decide.after_fault(row, error.text, self._clock.seconds(), refused)
            why = decide.why_left(error.kind, error.text)
            log.warn(
                "The application credential {name} of a job could not be deleted"
                " ({n} tries; it ends by itself at {end}): {text}",
                name=row.name,
                n=row.tries + 1,
                end=iso_seconds(row.expires_at),
                text=why,
            )
            if error.kind in decide.LASTING and not row.trouble:
                text = (
                    f"the application credential of job execution {row.execution_id} could not be"
                    f" deleted; it ends at {iso_seconds(row.expires_at)}: {why}"
                )
                code = Code.JOB_CREDENTIAL.value
                await self._rows.record(row.cluster_id, "retry", code, text)
        else:
            after = decide.after_deletion(row, existed, self._clock.seconds())
        if after is None:
            await self._store.tx(lambda tx: tx.job_credentials.forget(row.name))
        else:
            await self._store.tx(lambda tx: tx.job_credentials.save(after))

    async def _deleted(self, row: JobCredential) -> bool:
        """Delete an application credential. False: the account has none. Raises CloudError."""
        if self._cloud is None:
            text = "cloud.job_credentials is password, so that svcd deletes none"
            raise CloudError("identity", Fault.REFUSED, text)
        id_ = "" if row.made is None else row.made.id
        return await self._cloud.delete_application_credential(
            row.tenant_id, row.account, row.name, id_
        )


async def _is_open(tx: Tx, id_: ExecutionId) -> bool:
    row = await tx.executions.find(id_)
    return row is not None and not lifecycle.is_over(row)
