"""The values of a Pig job on their way to Pig: its options, parameters and arguments. Pure.

A class of svcd reads them from a file and starts Oozie's class for Pig. Its source, in
svcd.workflow.runner, says how a parameter stands in a script as it was given.

Note: args. Pig takes options from the beginning of its command line. The first text that is none
of them, and all after it, are the arguments of the script: Pig keeps them in the property
`pig.cmd.args.remainders`. Hadoop's reader of the same command line leaves out each `--`, and Pig
stops at a text like `-Dk=v`; so svcd gives Pig only its options on the command line. Those that
name the script and its log (`-f`, `-e`, `-l`) are none of them, because svcd and Oozie use them.

Source: Pig 0.18.0 `Main`, `CmdLineParser`, `PreprocessorContext`; Oozie 5.2.1 `PigMain`,
`PigActionExecutor`; measured with the texts of tests/live/cli/test_given_values.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from svcd.model.job import JobConfigs
from svcd.workflow.decide import arguments
from svcd.workflow.decide.job_configs import shown

START_CLASS: Final = "org.svcd.jobs.StartPig"
MAIN: Final = "oozie.launcher.action.main.class"
"""The configuration that names the class which Oozie starts."""

_NO_VALUE: Final = frozenset({"b", "brief", "c", "check", "v", "verbose", "w", "warning"}) | {
    *("F", "stop_on_failure", "M", "no_multiquery", "N", "no_fetch")
}
_MAY_HAVE: Final = frozenset({"h", "help", "i", "version"})
_HAVE: Final = frozenset({"d", "debug", "g", "embedded", "t", "optimizer_off"}) | {
    *("m", "param_file", "p", "param", "x", "exectype")
}
_NAME: Final = re.compile(r"_*[A-Za-z][A-Za-z0-9_]*\Z")
"""What Pig replaces after a `$`."""
_NO_PATH: Final = re.compile(r"\$\{|[\x00-\x1f\x7f-\x9f\ufffe\uffff]")


def options_of(args: Sequence[str]) -> int:
    """The number of texts at the beginning that are options of Pig, with their values."""
    at = 0
    while at < len(args):
        name = args[at].lstrip("-") if args[at].startswith("-") else ""
        value = at + 1 < len(args) and args[at + 1] != "" and not args[at + 1].startswith("-")
        if name not in _NO_VALUE | _MAY_HAVE and not (name in _HAVE and value):
            break
        at += 2 if value and name not in _NO_VALUE else 1
    return at


def values(script: str, args: Sequence[str], params: Mapping[str, str]) -> bytes:
    """The values for `START_CLASS`. script: the name of its file. The texts hold no U+0000."""
    first = options_of(args)
    pairs = [text for pair in params.items() for text in pair]
    words = [_called(script), str(first), *args[:first], str(len(pairs)), *pairs, *args[first:]]
    return arguments.values([], words)


def config_faults(configs: JobConfigs) -> Iterator[str]:
    """Faults of `job_configs` that are Pig's own, with their JSON paths."""
    for name in configs.params:
        if name and "=" not in name and not _NAME.match(name):  # else it is refused for any program
            yield (
                f"$.job_configs.params: the name {shown(name)} cannot be written as a parameter of"
                " a Pig script, $NAME: use letters, digits and _, with a letter before the digits"
            )
    if MAIN in configs.configs:
        yield f'$.job_configs.configs["{MAIN}"]: svcd sets this configuration itself; remove it'


def _called(script: str) -> str:
    """The path by which Pig reads a script, and names it in its messages.

    Without `./`, Pig takes a `-` for the beginning of an option. Hadoop replaces `${x}` in a
    configuration, and XML has no control characters.
    """
    if _NO_PATH.search(script):
        return arguments.staged(0)
    return f"./{script}" if script.startswith("-") else script
