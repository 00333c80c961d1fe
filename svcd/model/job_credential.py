"""The application credential of a job: what the job logs in with at the object store."""

from __future__ import annotations

from attrs import field, frozen

from svcd.model.secret import Secret


@frozen(kw_only=True)
class ApplicationCredential:
    """An application credential of the identity service. Only its creator gets the secret."""

    id: str = field(repr=False)
    secret: Secret
