"""`python -m tests.run ...` is trial with one plain closing line built from trial's own result.

Above that line stand the tests that were left out, by module and reason, and the ids of the tests
that failed. `tests.run tests` runs a sample of the suite (tests/support/sample.py), the live
modules in a process beside the rest. What that lane printed comes after the other's. The
environment changes this; CI sets all three:

SVCD_TEST_EXHAUSTIVE=1: of `tests`, everything runs, in one process.

SVCD_TEST_LANES=1: of everything, too, and what needs the real OpenStack, a browser or hostile peers
runs in a third process. All of these mostly wait.

SVCD_TEST_AGAIN=N: up to N failed tests are run once more, each in a process of its own: real clouds
and JVMs on a busy machine lose a race against a deadline now and then. A test that passes then is
named as such and counted as passed; one that fails twice has failed.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from attrs import asdict, evolve, frozen
from twisted.scripts.trial import run as run_trial
from twisted.trial.reporter import Reporter

AGAIN = "SVCD_TEST_AGAIN"
EXHAUSTIVE = "SVCD_TEST_EXHAUSTIVE"
LANES = "SVCD_TEST_LANES"
_RESULT = "SVCD_TEST_RESULT"
_SAMPLE = "SVCD_TEST_SAMPLE"
_AGAIN_S = 900.0
_LANE_S = 4500.0
_PLATFORM = (
    "tests.support.real_openstack",
    "tests.support.openstack_case",
    "tests.support.platform_services",
)

_WAITING = ("tests.hostile.", "tests.live.test_console")


@frozen(kw_only=True)
class Result:
    """failed: ids of tests; a test that fails in its body and in a cleanup has failed once.

    left_out: for each module and reason the number of tests, and what suites left of their cases.
    """

    passed: int
    failed: tuple[str, ...]
    skipped: int
    left_out: tuple[str, ...] = ()

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
        left_out=left_out((case.id(), str(reason)) for case, reason in reporter.skips),
    )


def left_out(skipped: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """(id of a test, reason) -> a line for each module and reason, with the number of tests."""
    counts = Counter(
        (test.rsplit(".", 2)[0], reason.partition("\n")[0]) for test, reason in skipped
    )
    return tuple(
        f"{module}: {count} test{'s' * (count > 1)} ({reason})"
        for (module, reason), count in sorted(counts.items())
    )


def joined(results: Sequence[Result]) -> Result:
    """One result of several runs."""
    return Result(
        passed=sum(each.passed for each in results),
        failed=tuple(test for each in results for test in each.failed),
        skipped=sum(each.skipped for each in results),
        left_out=tuple(line for each in results for line in each.left_out),
    )


def lanes(modules: Mapping[str, str], sample: bool) -> Mapping[str, list[str]]:
    """Names of modules by name and text, for each lane: those that only compute, the live ones,
    and of everything those that mostly wait: for the real OpenStack, a browser or hostile peers.
    """
    found: dict[str, list[str]] = {"first": [], "live": [], "waiting": []}
    for name, text in sorted(modules.items()):
        waits = name.startswith(_WAITING) or any(p in text for p in _PLATFORM)
        live = name.startswith("tests.live.")
        lane = "waiting" if waits and not sample else "live" if live else "first"
        found[lane].append(name)
    return {lane: names for lane, names in found.items() if names}


def _modules() -> dict[str, str]:
    here = Path(__file__).parent
    return {
        ".".join(path.relative_to(here.parent).with_suffix("").parts): path.read_text("utf-8")
        for path in here.rglob("test_*.py")
    }


def _in_lanes(sample: bool) -> Result:
    """All lanes to their ends."""
    ended: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="svcd-lanes-") as folder, ExitStack() as opened:
        first, *others = [
            _start(lane, names, Path(folder), opened)
            for lane, names in lanes(_modules(), sample).items()
        ]
        for process, told in (first, *others):
            ended.append(_end(process, told))
        for _, told in others:
            print(told.with_suffix(".txt").read_text("utf-8", "replace"), flush=True)
    return joined(ended)


def _start(
    lane: str, names: Sequence[str], folder: Path, opened: ExitStack
) -> tuple[subprocess.Popen[bytes], Path]:
    """The process of a lane, and the file for its result. What it prints is shown, or kept in a
    text beside that file. It does not outlive `opened`.
    """
    told = folder / f"{lane}.json"
    output = opened.enter_context(told.with_suffix(".txt").open("wb")) if lane != "first" else None
    command = [sys.executable, "-m", "tests.run", "--temp-directory", f"_trial_temp-{lane}", *names]
    environment = _without(LANES, AGAIN) | {_RESULT: str(told)}
    process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    opened.callback(process.wait)
    opened.callback(process.kill)
    return process, told


def _end(process: subprocess.Popen[bytes], told: Path) -> Result:
    try:
        code: object = process.wait(_LANE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        code = f"killed after {_LANE_S:g} s"
    if not told.exists():  # it died: that is a failure too
        return Result(passed=0, failed=(f"the run itself (exit code {code})",), skipped=0)
    said = json.loads(told.read_text("utf-8"))
    return Result(
        passed=said["passed"],
        failed=tuple(said["failed"]),
        skipped=said["skipped"],
        left_out=tuple(said["left_out"]),
    )


def _closing(result: Result) -> Result:
    """Print what was left out and what failed, try that again where wanted, and close the run."""
    for line in result.left_out:
        print(f"left out: {line}", flush=True)
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
    everything = sys.argv[1:] == ["tests"]
    sample = everything and not os.environ.get(EXHAUSTIVE)
    if sample:
        os.environ[_SAMPLE] = "1"
    if sample or (everything and os.environ.get(LANES)):
        return 1 if _closing(_in_lanes(sample)).failed else 0
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
    from tests.support.sample import LEFT_OUT  # not before the environment is set

    result = joined([*ended, Result(passed=0, failed=(), skipped=0, left_out=tuple(LEFT_OUT))])
    told = os.environ.get(_RESULT)
    if told:
        Path(told).write_text(json.dumps(asdict(result)), encoding="utf-8")
        print(result.line(), flush=True)
        return 1 if result.failed else 0
    return 1 if _closing(result).failed else 0


if __name__ == "__main__":
    sys.exit(main())
