"""The pytest plugin: the fixture `svcd_fake`, a new FakeService for each test.

pytest loads this module in every project that has svcd installed. So the module imports the service
only when a test uses the fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from svcd.testing import FakeService


@pytest.fixture
def svcd_fake() -> Iterator[FakeService]:
    """A new FakeService, which is closed after the test."""
    from svcd.testing import FakeService

    with FakeService() as service:
        yield service
