"""The token of a cluster: the password of its daemons, where they take one. Pure.

Note: where the token is. svcd stores none. It derives the token from the key that seals stored
secrets and from the ids of project and cluster, so the token stays the same for the cluster's life,
and neither a copy of the database nor another project reveals it. A distribution never sees it:
its files and links have MASK in its place. svcd inserts the token when it writes such a file on a
machine, and when it shows a link to a caller who may change the cluster. Everything else, such as
records, events, dry runs and answers to readers, has the stars.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from attrs import field, frozen

from svcd.model.ids import ClusterId, TenantId
from svcd.model.redaction import MASK
from svcd.model.secret import Secret

_WORDS: Final = b"\xffcluster token"  # not UTF-8, so no digest of a caller's text is a token
_LENGTH: Final = 40
"""Hexadecimal digits of a token: 160 bits."""
CONTENT: Final = f"{MASK}\n".encode()
"""The content of a file with nothing but the token, as a distribution makes it."""
_CLUSTERS: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_INFO: Final = msgspec.json.Decoder(dict[str, dict[str, str]])
_ID: Final = msgspec.json.Decoder(ClusterId)
_IN_LINK: Final = f";token={MASK}"


@frozen
class ClusterTokens:
    """Makes and shows the tokens of clusters. digest: see ports.Sealer."""

    digest: Callable[[bytes], str] = field(repr=False)

    def of(self, tenant_id: TenantId, cluster_id: ClusterId) -> Secret:
        """The token of a cluster."""
        of = b"\0".join((_WORDS, tenant_id.encode(), cluster_id.encode()))
        return Secret(self.digest(of)[:_LENGTH])

    def shown(self, tenant_id: TenantId, text: bytes) -> bytes:
        """The JSON objects of clusters, separated by commas, with the tokens in their links.

        text: as stored. Only ids and links are decoded, and only if a cluster has such a link.
        """
        # the search for one byte takes a tenth of the time
        if b";" not in text or _IN_LINK.encode() not in text:
            return text
        clusters = _CLUSTERS.decode(b"[%b]" % text)
        for cluster in clusters:
            info = _INFO.decode(cluster["info"])
            token = self.of(tenant_id, _ID.decode(cluster["id"]))
            shown = {
                target: {name: _revealed(link, token) for name, link in links.items()}
                for target, links in info.items()
            }
            cluster["info"] = msgspec.Raw(msgspec.json.encode(shown))
        return msgspec.json.encode(clusters)[1:-1]


def inserted(content: bytes, token: Secret) -> bytes:
    """The content of a file with the token in the place of its stars."""
    return content.replace(MASK.encode(), token.reveal().encode())


def link(url: str) -> str:
    """A link to a daemon that takes the token, as a distribution makes it."""
    return url + _IN_LINK


def _revealed(text: str, token: Secret) -> str:
    if text.endswith(_IN_LINK):
        return text.removesuffix(MASK) + token.reveal()
    return text
