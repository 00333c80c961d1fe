"""The roles of trusts, and records of trusts.

A loose trust is one that no cluster's row names: svcd is requesting it, or has to delete it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from attrs import field, frozen

from svcd.model.ids import ClusterId, TenantId, Timestamp

ADMIN = "admin"
"""The role that rules the whole cloud in most policies, whatever the project."""


@frozen(kw_only=True)
class LooseTrust:
    """A record of a trust that is not, or not yet, in a cluster's row.

    svcd writes the record before it requests the trust, and deletes it with the write of the
    cluster's row that names the trust. So a record that stays points to a trust that no cluster
    may need.

    id: of the record, unique. cluster_id: the cluster for which the trust was requested.
    tenant_id, trustor_id: the project, and the user who gives the trust. expires_at: of the trust
    (`ownership_tags.trust_end`); svcd finds the trust by it; "" where the trust's id is known.
    trust_id: "" while unknown. doomed: no row may name the trust any more. due_at: time of the next
    check. tries: number of failed deletions; trouble: reason of the last failure.
    """

    id: str = field(repr=False)
    cluster_id: ClusterId
    tenant_id: TenantId
    trustor_id: str
    expires_at: str = ""
    trust_id: str = field(default="", repr=False)
    doomed: bool = False
    asked_at: Timestamp
    due_at: Timestamp
    tries: int = 0
    trouble: str = ""


@frozen(kw_only=True)
class GivenTrust:
    """A trust in the identity service's list of trusts to svcd's user."""

    id: str = field(repr=False)
    tenant_id: TenantId
    trustor_id: str
    expires_at: str


@frozen(kw_only=True)
class TrustFigures:
    """loose: trusts to delete, at the last turn. returned, failed: tries since the start."""

    loose: int = 0
    returned: int = 0
    failed: int = 0


def delegated(roles: Sequence[str], allowed: Collection[str]) -> Sequence[str]:
    """The roles of a user that svcd hands on: those that are `allowed`, and never admin.

    For a trust `cloud.trust_roles` allows them, for the login of a job `cloud.job_roles`.
    """
    wanted = {role.lower() for role in allowed} - {ADMIN}
    return [role for role in roles if role.lower() in wanted]
