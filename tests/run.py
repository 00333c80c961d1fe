"""`python -m tests.run ...` is trial with one plain closing line built from trial's own result.

Above that line stand the slowest tests and the seconds by folder, the tests that were left out, by
module and reason, and the ids of the tests that failed. `tests.run tests` runs a sample of the
suite (tests/support/sample.py), the live modules in a process beside the rest. What that process
printed comes after the other's. The environment changes this; CI sets all three:

SVCD_TEST_EXHAUSTIVE=1: of `tests`, everything runs, in one process.

SVCD_TEST_LANES=1: of everything, each of the groups of `lanes` has a process, up to three at a
time, because many tests wait for others' processes. What a group printed comes at its end.

SVCD_TEST_AGAIN=N: up to N failed tests are run once more, each in a process of its own: real clouds
and JVMs on a busy machine lose a race against a deadline now and then. A test that passes then is
named as such and counted as passed; one that fails twice has failed.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from attrs import asdict, evolve, field, frozen
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

_AT_ONCE = 3
"""Groups at a time. A fourth one makes two processors no faster."""
_SMALL = 7
"""Modules of `tests.live` in a group."""
_FIRST = ("tests.unit.", "tests.conformance.", "tests.contract.", "tests.system.")
"""The likeliest failures first: a fault of one module is seen before the searches begin."""
_SLOWEST = 10


@frozen(kw_only=True)
class Result:
    """failed: ids of tests; a test that fails in its body and in a cleanup has failed once.

    left_out: for each module and reason the number of tests, and what suites left of their cases.
    seconds: by the ids of the tests.
    """

    passed: int
    failed: tuple[str, ...]
    skipped: int
    left_out: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(factory=dict)

    def line(self) -> str:
        return f"{self.passed} passed, {len(self.failed)} failed, {self.skipped} skipped"


def result_of(reporter: Any, seconds: Mapping[str, float]) -> Result:
    """What trial's reporter has counted, and the tests' seconds by their ids."""
    cases = [case for case, _ in (*reporter.failures, *reporter.errors)]
    cases += [case for case, *_ in reporter.unexpectedSuccesses]
    return Result(
        passed=reporter.successes + len(reporter.expectedFailures),
        failed=tuple(sorted({case.id() for case in cases})),
        skipped=len(reporter.skips),
        left_out=left_out((case.id(), str(reason)) for case, reason in reporter.skips),
        seconds=seconds,
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
        seconds={test: spent for each in results for test, spent in each.seconds.items()},
    )


def times(seconds: Mapping[str, float]) -> tuple[str, ...]:
    """Ids of tests with their seconds -> lines of a table: the slowest tests, then all folders."""
    folders: dict[str, list[float]] = {}
    for test, spent in seconds.items():
        folder = ".".join(test.split(".")[:-3][:3])
        folders.setdefault(folder, []).append(spent)
    slowest = sorted(seconds.items(), key=lambda row: -row[1])[:_SLOWEST]
    by_folder = sorted(folders.items(), key=lambda row: -sum(row[1]))
    return (
        "seconds  the slowest tests",
        *(f"{spent:7.1f}  {test}" for test, spent in slowest),
        "seconds  tests  by folder",
        *(f"{sum(spent):7.1f}  {len(spent):5}  {name}" for name, spent in by_folder),
    )


def lanes(modules: Mapping[str, str], sample: bool) -> Mapping[str, Sequence[str]]:
    """Names of modules by name and text, for each group. The longest groups come first.

    What uses the real OpenStack is one group, because others must not use it meanwhile.
    """
    found: dict[str, list[str]] = {}
    live = 0
    for name, text in sorted(modules.items(), key=lambda module: _order(module[0])):
        group = "live" if name.startswith("tests.live.") else "rest"
        if not sample:
            if any(part in text for part in _PLATFORM):
                group = "platform"
            elif name.startswith(("tests.hostile.", "tests.simulation.")):
                group = name.split(".")[1]
            elif name.startswith("tests.live.test_console"):
                group = "console"
            elif group == "live":
                group, live = f"live {live // _SMALL + 1}", live + 1
        found.setdefault(group, []).append(name)
    last_first = dict(sorted(found.items(), reverse=True))
    return dict(sorted(last_first.items(), key=lambda each: each[0] not in ("platform", "rest")))


def _order(module: str) -> tuple[int, str]:
    place = next((n for n, folder in enumerate(_FIRST) if module.startswith(folder)), len(_FIRST))
    return place, module


def _modules() -> dict[str, str]:
    here = Path(__file__).parent
    return {
        ".".join(path.relative_to(here.parent).with_suffix("").parts): path.read_text("utf-8")
        for path in here.rglob("test_*.py")
    }


def _in_lanes(sample: bool) -> Result:
    """All groups to their ends. Of a sample the rest is shown as it goes."""
    groups = lanes(_modules(), sample)
    ended: list[Result] = []
    with (
        tempfile.TemporaryDirectory(prefix="svcd-lanes-") as folder,
        ThreadPoolExecutor(_AT_ONCE) as threads,
    ):
        runs = {
            threads.submit(_run, each, groups[each], Path(folder), sample and each == "rest"): each
            for each in groups
        }
        for run in as_completed(runs):
            result, printed, seconds = run.result()
            name = runs[run]
            print(f"{printed}{name}: {result.line()} in {seconds:.0f} s\n", flush=True)
            ended.append(result)
    return joined(ended)


def _run(group: str, names: Sequence[str], folder: Path, shown: bool) -> tuple[Result, str, float]:
    """The result of a group in a process of its own, what it printed unless shown, its seconds."""
    place = folder / group.replace(" ", "-")
    told = place.with_suffix(".json")
    command = [sys.executable, "-m", "tests.run", "--temp-directory", f"_trial_temp-{place.name}"]
    environment = _without(LANES, AGAIN) | {_RESULT: str(told)}
    began = time.monotonic()
    with place.with_suffix(".txt").open("wb") as output:
        out = None if shown else output
        try:
            done = subprocess.run(
                [*command, *names], env=environment, stdout=out, stderr=out, timeout=_LANE_S,
                check=False,
            )  # fmt: skip
            code: object = done.returncode
        except subprocess.TimeoutExpired:
            code = f"killed after {_LANE_S:g} s"
    printed = place.with_suffix(".txt").read_text("utf-8", "replace")
    return _told(told, group, code), printed, time.monotonic() - began


def _told(told: Path, group: str, code: object) -> Result:
    if not told.exists():  # it died: that is a failure too
        return Result(passed=0, failed=(f"the group {group} (exit code {code})",), skipped=0)
    said = json.loads(told.read_text("utf-8"))
    return Result(
        passed=said["passed"],
        failed=tuple(said["failed"]),
        skipped=said["skipped"],
        left_out=tuple(said["left_out"]),
        seconds=said["seconds"],
    )


def _closing(result: Result) -> Result:
    """Print times, what was left out and what failed, try that again where wanted, and close."""
    for line in times(result.seconds):
        print(line, flush=True)
    for line in result.left_out:
        print(f"left out: {line}", flush=True)
    for test in result.failed:
        print(f"failed: {test}", flush=True)
    most = int(os.environ.get(AGAIN) or 0)
    mended: list[str] = []
    if len(result.failed) <= most:
        mended = [t for t in result.failed if " " not in t and _passes(t)]
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
    seconds: dict[str, float] = {}
    start, stop, done = Reporter.startTest, Reporter.stopTest, Reporter.done

    def started(self: Reporter, test: Any) -> None:
        seconds[test.id()] = -time.monotonic()
        start(self, test)

    def stopped(self: Reporter, test: Any) -> None:
        stop(self, test)
        seconds[test.id()] += time.monotonic()

    def done_and_told(self: Reporter) -> None:
        done(self)
        ended.append(result_of(self, seconds))

    Reporter.startTest, Reporter.stopTest = started, stopped  # type: ignore[method-assign]
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
