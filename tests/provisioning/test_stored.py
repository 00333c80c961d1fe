"""The controller's stories once more, on the store itself. On PostgreSQL: test_live_stored."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from svcd.store.database import Database
from svcd.store.sqlite import SqliteDatabase
from tests.provisioning import support, test_controller
from tests.provisioning.stored import StoredStore
from tests.support import now


class Stored:
    """Each site of a test gets a database of its own from `new_database`."""

    def setUp(self) -> None:
        case: Any = self
        case.patch(support, "MemoryStore", lambda: StoredStore(self.new_database()))

    def new_database(self) -> Database:
        case: Any = self
        database = SqliteDatabase(None)
        case.addCleanup(lambda: now(Deferred.fromCoroutine(database.close())))
        return database


class StoredCreateTests(Stored, test_controller.CreateTests):
    """A cluster that is made."""


class StoredScaleTests(Stored, test_controller.ScaleTests):
    """One that grows and shrinks."""


class StoredDeleteTests(Stored, test_controller.DeleteTests):
    """One that is removed."""


class StoredRestartTests(Stored, test_controller.RestartTests):
    """A daemon that dies at any moment."""


class StoredConflictTests(Stored, test_controller.ConflictTests):
    """Writers that come between."""


class StoredBugTests(Stored, test_controller.BugTests):
    """A database that is away, among others."""
