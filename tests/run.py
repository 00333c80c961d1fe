"""`python -m tests.run ...` is trial with one plain closing line built from trial's own result.

Above that line stand the ids of the tests that failed, one a line. Two things more, by environment,
which the door to main sets:

SVCD_TEST_LANES=1: of `tests`, what needs the real OpenStack runs in a process beside the rest: it
mostly waits. What that lane printed comes after the other's.

SVCD_TEST_AGAIN=N: up to N failed tests are run once more, each in a process of its own: real clouds
and JVMs on a busy machine lose a race against a deadline now and then. A test that passes then is
named as such and counted as passed; one that fails twice has failed.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen
from twisted.scripts.trial import run as run_trial
from twisted.trial.reporter import Reporter

AGAIN = "SVCD_TEST_AGAIN"
LANES = "SVCD_TEST_LANES"
_RESULT = "SVCD_TEST_RESULT"
_AGAIN_S = 900.0
_LANE_S = 3600.0
_PLATFORM = ("tests.real_openstack", "tests.openstack_case", "tests.platform_services")


@frozen(kw_only=True)
class Result:
    """failed: ids of tests; a test that fails in its body and in a cleanup has failed once."""

    passed: int
    failed: tuple[str, ...]
    skipped: int

    def line(self) -> str:
        return f"{self.passed} passed, {len(self.failed)} failed, {self.skipped} skipped"


def result_of(reporter: Any) -> Result:
    """What trial's reporter has counted."""
    cases = [case for case, _ in (*reporter.failures, *reporter.errors)]
    cases += [case for case, *_ in reporter.unexpectedSuccesses]
    return Result(
        passed=reporter.successes + len(reporter.expectedFailures),
        failed=tuple(sorted({case.id() for case in cases})),
        skipped=len(reporter.skips),
    )


def joined(results: Sequence[Result]) -> Result:
    """One result of several runs."""
    return Result(
        passed=sum(each.passed for each in results),
        failed=tuple(test for each in results for test in each.failed),
        skipped=sum(each.skipped for each in results),
    )


def lanes(modules: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Names of modules by their text: the rest, and those that use the real OpenStack."""
    rest: list[str] = []
    platform: list[str] = []
    for name, text in sorted(modules.items()):
        (platform if any(each in text for each in _PLATFORM) else rest).append(name)
    return rest, platform


def _modules() -> dict[str, str]:
    here = Path(__file__).parent
    return {
        ".".join(path.relative_to(here.parent).with_suffix("").parts): path.read_text("utf-8")
        for path in here.rglob("test_*.py")
    }


def _in_lanes() -> Result:
    """Both lanes to their ends."""
    rest, platform = lanes(_modules())
    with tempfile.TemporaryDirectory(prefix="svcd-lanes-") as folder:
        beside = Path(folder) / "beside.txt"
        with beside.open("wb") as output:
            other = _start(platform, Path(folder) / "beside.json", "_trial_temp-beside", output)
            try:
                first = _end(_start(rest, Path(folder) / "first.json", "_trial_temp"), folder)
                second = _end(other, folder)
            finally:
                if other[0].poll() is None:
                    other[0].kill()
                    other[0].wait()
        print(beside.read_text("utf-8", "replace"), flush=True)
    return joined([first, second])


def _start(
    names: Sequence[str], told: Path, temporary: str, output: Any = None
) -> tuple[subprocess.Popen[bytes], Path]:
    command = [sys.executable, "-m", "tests.run", "--temp-directory", temporary, *names]
    environment = _without(LANES, AGAIN) | {_RESULT: str(told)}
    process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    return process, told


def _end(lane: tuple[subprocess.Popen[bytes], Path], folder: str) -> Result:
    process, told = lane
    try:
        code: object = process.wait(_LANE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        code = f"killed after {_LANE_S:g} s"
    if not told.exists():  # it died: that is a failure too
        return Result(passed=0, failed=(f"the run itself (exit code {code})",), skipped=0)
    said = json.loads(told.read_text("utf-8"))
    return Result(passed=said["passed"], failed=tuple(said["failed"]), skipped=said["skipped"])


def _closing(result: Result) -> Result:
    """Tell what failed, try it again where that is wanted, and print the closing line."""
    for test in result.failed:
        print(f"failed: {test}", flush=True)
    most = int(os.environ.get(AGAIN) or 0)
    mended = [t for t in result.failed if _passes(t)] if len(result.failed) <= most else []
    for test in mended:
        print(f"failed at first, passed when run again: {test}")
    left = tuple(test for test in result.failed if test not in mended)
    last = evolve(result, passed=result.passed + len(mended), failed=left)
    print(last.line(), flush=True)
    return last


def _passes(test: str) -> bool:
    command = [sys.executable, "-m", "tests.run", "--temp-directory", "_trial_temp-again", test]
    try:
        again = subprocess.run(
            command, env=_without(LANES, AGAIN, _RESULT), timeout=_AGAIN_S, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return again.returncode == 0


def _without(*names: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in names}


def main() -> int:
    """The exit code: 0 when every test passed or was skipped."""
    if sys.argv[1:] == ["tests"] and os.environ.get(LANES):
        return 1 if _closing(_in_lanes()).failed else 0
    ended: list[Result] = []
    done = Reporter.done

    def done_and_told(self: Reporter) -> None:
        done(self)
        ended.append(result_of(self))

    Reporter.done = done_and_told  # type: ignore[method-assign]
    try:
        run_trial()
    except SystemExit as end:
        if not ended:  # wrong options, or --help
            raise
        if end.code not in (0, 1):
            print(f"trial ended with {end.code}", flush=True)
            return 1
    result = joined(ended)
    told = os.environ.get(_RESULT)
    if told:
        Path(told).write_text(
            json.dumps(
                {"passed": result.passed, "failed": result.failed, "skipped": result.skipped}
            ),
            encoding="utf-8",
        )
        print(result.line(), flush=True)
        return 1 if result.failed else 0
    return 1 if _closing(result).failed else 0


if __name__ == "__main__":
    sys.exit(main())
