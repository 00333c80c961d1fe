"""`python -m tests.run ...` is trial with one plain closing line built from trial's own result."""

import sys

from twisted.scripts.trial import run
from twisted.trial.reporter import Reporter

_done = Reporter.done


def _done_with_line(self: Reporter) -> None:
    _done(self)
    passed = self.successes + len(self.expectedFailures)
    failed = len(self.failures) + len(self.errors) + len(self.unexpectedSuccesses)
    self._stream.write(f"{passed} passed, {failed} failed, {len(self.skips)} skipped\n")


Reporter.done = _done_with_line  # type: ignore[method-assign]

if __name__ == "__main__":
    sys.exit(run())
