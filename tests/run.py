"""`python -m tests.run ...` is trial with one plain closing line built from trial's own result.

Above that line stand the ids of the tests that failed, one a line. With SVCD_TEST_AGAIN=N (the
door to main sets it), up to N failed tests are run once more, each in a process of its own: real
clouds and JVMs on a busy machine lose a race against a deadline now and then. A test that passes
then is named as such and counted as passed; one that fails twice has failed.
"""

import os
import subprocess
import sys
from collections.abc import Sequence

from twisted.scripts.trial import run
from twisted.trial.reporter import Reporter

AGAIN = "SVCD_TEST_AGAIN"
_AGAIN_S = 600.0

_done = Reporter.done
_left: list[int] = []
"""How many tests failed for good, once the reporter is done."""


def _done_with_line(self: Reporter) -> None:
    _done(self)
    cases = [*(case for case, _ in self.failures), *(case for case, _ in self.errors)]
    failed = sorted({case.id() for case in cases})
    # One test may fail more than once (in its body and in a cleanup): it is one failed test.
    unexpected = len(self.unexpectedSuccesses)
    passed = self.successes + len(self.expectedFailures)
    for test in failed:
        self._stream.write(f"failed: {test}\n")
    mended = _again(failed, int(os.environ.get(AGAIN) or 0))
    for test in mended:
        self._stream.write(f"failed at first, passed when run again: {test}\n")
    left = len(failed) - len(mended) + unexpected
    _left.append(left)
    passed += len(mended)
    self._stream.write(f"{passed} passed, {left} failed, {len(self.skips)} skipped\n")


def _again(failed: Sequence[str], most: int) -> list[str]:
    """Those of the failed tests that pass now. None are tried when there are more than `most`."""
    if not failed or len(failed) > most:
        return []
    environment = {name: value for name, value in os.environ.items() if name != AGAIN}
    return [test for test in failed if _passes(test, environment)]


def _passes(test: str, environment: dict[str, str]) -> bool:
    command = [sys.executable, "-m", "tests.run", test]
    try:
        done = subprocess.run(command, env=environment, timeout=_AGAIN_S, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


Reporter.done = _done_with_line  # type: ignore[method-assign]

if __name__ == "__main__":
    try:
        run()
    except SystemExit as end:
        if _left and end.code in (0, 1, False, True):
            sys.exit(1 if any(_left) else 0)
        raise
