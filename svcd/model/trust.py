"""A trust that no cluster's row names: it was asked for, or is to be given back."""

from __future__ import annotations

from attrs import field, frozen

from svcd.model.ids import ClusterId, TenantId, Timestamp


@frozen(kw_only=True)
class LooseTrust:
    """What is known of a trust that is not, or not yet, in a cluster's row.

    Written before the trust is asked for, and gone with the write of the row that names it; so one
    that stays tells of a trust that nobody may need.

    id: its own, unlike all others. cluster_id: the cluster that it was, or was to be, for.
    tenant_id, trustor_id: the project, and who gives it. mark: its end (`marks.trust_end`), by
    which it is found; "" where the id is known. trust_id: "" until that is known. doomed: no row
    may name it any more. due_at: when to look at it next. tries: how often it could not be given
    back; trouble: why, the last time.
    """

    id: str = field(repr=False)
    cluster_id: ClusterId
    tenant_id: TenantId
    trustor_id: str
    mark: str = ""
    trust_id: str = field(default="", repr=False)
    doomed: bool = False
    asked_at: Timestamp
    due_at: Timestamp
    tries: int = 0
    trouble: str = ""


@frozen(kw_only=True)
class GivenTrust:
    """A trust as the identity service shows it to svcd's user, to whom it was given."""

    id: str = field(repr=False)
    tenant_id: TenantId
    trustor_id: str
    mark: str
