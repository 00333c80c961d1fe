"""The application credential of a job: its login at the object store."""

from __future__ import annotations

from attrs import field, frozen

from svcd.model.ids import ClusterId, ExecutionId, TenantId, Timestamp
from svcd.model.job import Credentials
from svcd.model.secret import Secret


@frozen(kw_only=True)
class ApplicationCredential:
    """An application credential of the identity service. Only its creator gets the secret."""

    id: str = field(repr=False)
    secret: Secret


@frozen(kw_only=True)
class JobCredential:
    """A record of an application credential that svcd creates for one account of one execution.

    svcd writes the record before it requests the application credential, and deletes it after the
    application credential. So a record whose execution has ended points to an application
    credential that no job needs.

    name: at the identity service (`ownership_tags.credential_name`), unique. cluster_id: of the
    execution, or its own id without a cluster; decides the lease. account: of the user to whom it
    belongs. made: None while its creation is not confirmed. asked_at: time of the first request.
    again: an earlier request had no answer. expires_at: its end.
    due_at: time of the next check after the end of the execution. tries: number of failed
    deletions; trouble: reason of the last failure.
    """

    name: str
    execution_id: ExecutionId
    cluster_id: ClusterId
    tenant_id: TenantId
    account: Credentials
    made: ApplicationCredential | None = None
    again: bool = False
    asked_at: Timestamp
    expires_at: Timestamp
    due_at: Timestamp
    tries: int = 0
    trouble: str = ""
