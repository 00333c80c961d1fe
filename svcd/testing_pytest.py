"""The pytest plugin: a fixture `svcd_fake`, a fresh FakeService for each test.

pytest loads this module in every run of every project that has svcd installed, so it imports the
service only when a test asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from svcd.testing import FakeService


@pytest.fixture
def svcd_fake() -> Iterator[FakeService]:
    """A svcd of the test's own, closed after it."""
    from svcd.testing import FakeService

    with FakeService() as service:
        yield service
