"""Reading HDFS in tests: the daemon writes and deletes only."""

from __future__ import annotations

from collections.abc import Sequence

from svcd.clients.webhdfs import WebHdfsClient, fault_of
from svcd.model import foreign
from svcd.ports.engine import EngineError
from svcd.ports.faults import Fault
from svcd.ports.machines import Location


class ReadingClient(WebHdfsClient):
    """A client that lists and reads, too."""

    async def list(self, base: Location, path: str, user: str) -> Sequence[str] | None:
        """Names in the folder, or None when the folder does not exist."""
        try:
            answer = await self._call("GET", base, path, user, {"op": "LISTSTATUS"})
        except EngineError as error:
            if error.kind is Fault.NOT_FOUND:
                return None
            raise
        tree = foreign.mapping(answer.body)
        return [each["pathSuffix"] for each in tree["FileStatuses"]["FileStatus"]]

    async def read(self, base: Location, path: str, user: str, limit: int) -> bytes:
        """The first bytes of a file. Raises EngineError."""
        query = {"op": "OPEN", "length": str(limit), "noredirect": "true"}
        answer = await self._ask("GET", Location(await self._place("GET", base, path, user, query)))
        if answer.status != 200:
            raise fault_of(f"OPEN {path}", answer)
        return answer.body[:limit]
