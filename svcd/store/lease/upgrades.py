"""Waits with an upgrade of the schema for daemons whose release could not use it.

An upgrade names the releases that can go on with it (`svcd.store.migrations`), and a daemon's row
tells which schema its release knows.
"""

from __future__ import annotations

from typing import Final

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.runtime.tasks import sleep
from svcd.store import migrations
from svcd.store.database import SchemaError
from svcd.store.sessions import Session

log = Logger()

_OLDER_S: Final = 1.0
"""Seconds. An upgrade waits for older daemons for the lease's time and this time."""
_TRY_S: Final = 0.25
"""Time between two looks at these daemons."""
IS_SHARED: Final = "select to_regclass('daemons') is not null"
"""Whether the database has the table. Without it, no daemon can live."""
OTHERS: Final = """
select coalesce((select string_agg(about, '; ' order by about) from daemons
                  where id <> %(id)s and knows < %(needed)s
                    and until_s > extract(epoch from clock_timestamp())::double precision), '')
"""
"""The living daemons that an upgrade would shut out."""


async def until_upgradable(
    clock: IReactorTime, session: Session, name: str, lease_s: float
) -> None:
    """Wait until no daemon lives that could not use the schema after this one's upgrade.

    name: of this daemon. Raises SchemaError when such a daemon lives on after one lease, and when
    this release cannot use the schema.
    """
    if not (await session.execute(IS_SHARED)).fetchone()[0]:
        return
    end = clock.seconds() + lease_s + _OLDER_S
    waits = False
    while True:
        row = (await session.execute(migrations.CURRENT)).fetchone()
        version = migrations.version_of(row)
        if why := migrations.refusal(version):
            raise SchemaError(why)
        if version.number >= migrations.newest():
            return
        needed = {"id": name, "needed": migrations.needed()}
        (others,) = (await session.execute(OTHERS, needed)).fetchone()
        if not others:
            return
        if clock.seconds() >= end:
            raise SchemaError(
                f"daemons of an older release use the database ({others}): this release would"
                f" upgrade its schema {version.number} to {migrations.newest()}, which they"
                " cannot use; stop them, then start this daemon again"
            )
        if not waits:
            log.info("Waiting for the end of older daemons: {others}", others=others)
            waits = True
        await sleep(clock, _TRY_S)
