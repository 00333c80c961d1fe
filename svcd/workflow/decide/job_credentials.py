"""The application credentials of an execution: which it needs, and when they are deleted. Pure.

A job gets one application credential for each account of its data sources. It reads and writes the
object store with it; the passwords of the accounts stay in the daemon.

Note: recorded before it is created. An application credential is real authority over a tenant, and
no transaction covers the call that creates it. So svcd first writes a record, with the name by
which it finds the application credential. The record stays until the application credential is
deleted. A record whose execution has ended is work for the sweep.

Note: a second search. A call may take effect long after svcd gave up its answer, when the service
was stopped for a while. So svcd searches once more, much later, for one that it did not find, and
for another of the same name where it requested it again.

Note: a changed password. Only the account's password opens the way to the deletion. When it has
changed, the application credential stays until its end. svcd says so, and tries again until then.

Note: a refused account. The job starts without a login, and fails with that reason when it needs
one. It may not need one: a job may name its data in another way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from attrs import evolve, frozen

from svcd.model import ownership_tags
from svcd.model.backoff import Backoff
from svcd.model.ids import ClusterId, iso_seconds, seconds_of, timestamp
from svcd.model.job import Credentials, DataSource, Execution
from svcd.model.job_credential import ApplicationCredential, JobCredential
from svcd.model.secret import Secret
from svcd.ports.faults import Fault

SURE_S: Final = 3600.0
"""A call without an answer may take effect for this long."""
LOOK_S: Final = 60.0
"""Time between two turns of the sweep, and before the second try to delete one."""
_MOST_S: Final = 6 * 3600.0
"""The longest wait before the next try to delete one."""
_BACKOFF: Final = Backoff(first_s=LOOK_S, most_s=_MOST_S)

UNSURE: Final = frozenset({Fault.TIMEOUT, Fault.SERVER_ERROR})
"""Faults of a request to create one after which it may exist."""


LASTING: Final = frozenset({Fault.UNAUTHORIZED, Fault.FORBIDDEN})
"""Faults of a deletion that only a person can end, such as a changed password."""
_ALLOW: Final = (
    "the policy of the identity service must allow identity:delete_application_credential to the"
    " owner of one (svcd doctor checks that with the login of a user of the project)"
)


def why_left(kind: Fault, text: str) -> str:
    """Why one could not be deleted, with the remedy where the fault tells the cause."""
    return f"{text}; {_ALLOW}" if kind is Fault.FORBIDDEN else text


@frozen(kw_only=True)
class Login:
    """The login of a job for one account. expires: ISO 8601."""

    credential: ApplicationCredential
    expires: str


@frozen(kw_only=True)
class Refused:
    """The identity service refuses the account. text: for people."""

    text: str


Logins: TypeAlias = Mapping[Credentials, Login | Refused]
"""The login of each account. A job logs in with the password of an account that is not there."""

_LONGEST: Final = Login(
    credential=ApplicationCredential(id="0" * 32, secret=Secret("0" * 86)),
    expires="2026-01-01T00:00:00Z",
)


def accounts_of(sources: Sequence[DataSource | None]) -> Sequence[Credentials]:
    """The different accounts of the data sources in the object store, in their order."""
    accounts: dict[Credentials, None] = {}
    for source in sources:
        if source is not None and source.credentials and source.url.startswith("objstore://"):
            accounts[source.credentials] = None
    return list(accounts)


def samples(sources: Sequence[DataSource | None]) -> Logins:
    """Logins that are as long as real ones."""
    return dict.fromkeys(accounts_of(sources), _LONGEST)


def wanted(
    row: Execution,
    sources: Sequence[DataSource | None],
    installation: str,
    now: float,
    life_s: float,
) -> Sequence[JobCredential]:
    """The records of a start of `row` now. life_s: of an application credential."""
    cluster_id = ClusterId(row.cluster_id or row.id)
    return [
        JobCredential(
            name=ownership_tags.credential_name(cluster_id, installation, row.id, number),
            execution_id=row.id,
            cluster_id=cluster_id,
            tenant_id=row.tenant_id,
            account=account,
            asked_at=timestamp(now),
            expires_at=timestamp(now + life_s),
            due_at=timestamp(now),
        )
        for number, account in enumerate(accounts_of(sources), 1)
    ]


def is_usable(known: JobCredential, new: JobCredential) -> bool:
    """Whether a later start of the execution can use `known`: it has half of its life left."""
    asked, ends = seconds_of(known.asked_at), seconds_of(known.expires_at)
    now = seconds_of(new.asked_at)
    return known.made is not None and known.account == new.account and now < (asked + ends) / 2


def login_of(row: JobCredential, made: ApplicationCredential) -> Login:
    return Login(credential=made, expires=f"{iso_seconds(row.expires_at)}Z")


def keys_of(account: Credentials, logins: Logins) -> Mapping[str, str]:
    """The configurations of a job for one account, by their last part."""
    match logins.get(account):
        case Login(credential=credential, expires=expires):
            return {
                "credential.expires": expires,
                "credential.id": credential.id,
                "credential.secret": credential.secret.reveal(),
            }
        case Refused(text=text):
            return {"refused": text}
        case _:
            return {"password": account.password, "username": account.user}


def secrets_of(rows: Sequence[JobCredential]) -> Sequence[Secret]:
    return [row.made.secret for row in rows if row.made is not None]


# ---- the deletion -------------------------------------------------------------------------------


def is_due(row: JobCredential, now: float) -> bool:
    """Whether the sweep deletes `row` now. A due_at that is far away is from a wrong clock."""
    due = seconds_of(row.due_at)
    return due <= now or due > now + _MOST_S + LOOK_S


def after_deletion(row: JobCredential, existed: bool, now: float) -> JobCredential | None:
    """`row` after a deletion; None when no work is left. existed: the account had it."""
    sure_at = seconds_of(row.asked_at) + SURE_S
    if now >= sure_at or (existed and not row.again):
        return None
    due_at = timestamp(min(sure_at, now + SURE_S))
    return evolve(row, made=None, due_at=due_at, tries=0, trouble="")


def after_fault(
    row: JobCredential, text: str, now: float, refused: bool = False
) -> JobCredential | None:
    """`row` after a deletion that failed; None when the application credential has ended.

    refused: the service refuses the account, so that svcd waits longest: many clouds lock an
    account after a few wrong passwords.
    """
    ends = seconds_of(row.expires_at)
    if now >= ends:
        return None
    wait_s = _MOST_S if refused else _BACKOFF.delay_s(row.tries + 1)
    due_at = timestamp(min(now + wait_s, ends))
    return evolve(row, due_at=due_at, tries=row.tries + 1, trouble=text[:500])
