"""First-boot scripts of node groups: the command that runs one on a machine, and its report. Pure.

A script is an internal job binary of at most 1 MiB. It runs as the login user in the user's home,
with `sudo` where the image gives it, stdin from /dev/null, and these variables:

- SVCD_CLUSTER, SVCD_CLUSTER_ID: name and id of the cluster;
- SVCD_GROUP, SVCD_MACHINE, SVCD_INDEX: the node group, the machine, its number in the group from 1;
- SVCD_PROCESSES: the processes of the group, separated by commas.

A script that begins with `#!` runs by itself, another one by `sh`. svcd ends its process group when
it ends, and at its deadline; a program that shall go on needs `setsid` and files for its output.
svcd keeps the last 16 KiB of the output, and shows the last 20 lines.

Note: once. A supervisor in a session of its own runs the script, so it goes on when the connection
or svcd ends. It holds a lock, which ends with it. It leaves the exit code of this request's run,
and after a success a mark for good. A command that comes again waits for the lock, reports the code
and runs nothing a second time. A machine that stopped amid a script has neither code nor lock; then
the script runs again. So a script must be safe to repeat after an interruption. It does not run
beside programs of an earlier run that neither the login user nor `sudo` could end.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final

from svcd.model.cluster import Cluster
from svcd.model.controls import visible
from svcd.ports.machines import CommandResult
from svcd.provisioning.decide.steps import RunScript

_LINES: Final = 20
_CHARACTERS: Final = 1500
"""Most lines and characters of a script's output in an event."""
_WAIT_S: Final = 15
"""Longest time from the end of a script to that of its supervisor."""
_TROUBLE: Final = 75
"""Exit code of the command, with a line of `svcd:` on stderr, when there is no end of a script."""

_STOP: Final = """\
stop() {
    read -r group boot 2>/dev/null <"$1" || return 0
    read -r now </proc/sys/kernel/random/boot_id
    [ "$boot" = "$now" ] || return 0
    kill -9 "-$group" 2>/dev/null
    tries=0
    while sed 's/.*) //' /proc/[0-9]*/stat 2>/dev/null | grep -q "^[^XZ] [0-9]* $group "; do
        case $tries in
        2) timeout 2 sudo -n kill -9 -- "-$group" >/dev/null 2>&1 ;;
        10) return 1 ;;
        esac
        sleep 0.2
        tries=$((tries + 1))
    done
    rm -f "$1"
}
"""
"""Ends the process group that a file names, also programs of root; fails when some still run."""

_SUPERVISOR: Final = (
    _STOP
    + """\
run=$0
{ tail -c 16384 <"$run/pipe" >"$run/part"; mv "$run/part" "$run/output"; } 9>&- &
timeout --foreground "$1" setsid sh -c '
echo "$$ $(cat /proc/sys/kernel/random/boot_id)" >"$0/group"
umask "$1"
cd
if [ "$(head -c 2 "$0/script")" = "#!" ]; then
    set -f
    set -- $(head -n 1 "$0/script" | cut -c 3-) ""
    if [ -z "$1" ] || [ -e "$1" ]; then "$0/script"; else
        case $1 in
        *"$(printf "\\r")") echo "line 1 ends with CR (Windows): save it with Unix line ends" ;;
        *) echo "line 1 names $1, which the machine does not have" ;;
        esac
        (exit 127)
    fi
else
    sh "$0/script"
fi
code=$?
echo $code >"$0/ended"
exit $code' "$run" "$2" >"$run/pipe" 2>&1 9>&-
code=$? note=
case $code in
124) note="not done within $1 s: svcd ended it" ;;
137 | 143) note="a signal ended the script" ;;
esac
if read -r ended <"$run/ended"; then code=$ended note=; fi
[ "$code" = 124 ] || sleep 1
stop "$run/group" || note="${note:+$note, but }programs of it still run (process group $group)"
if [ "$code" = 143 ]; then sleep 2; fi
tries=0
until [ -e "$run/output" ] || [ $tries = 15 ]; do sleep 0.2; tries=$((tries + 1)); done
[ -e "$run/output" ] || echo "its output is not known: a program of it has it open" >"$run/output"
rm -f "$run/script" "$run/pipe"
if [ "$code" = 0 ]; then date >"$run/../done"; fi
echo "$code $note" >"$run/code.new"
mv "$run/code.new" "$run/code"
"""
)
"""Words: the folder of the run, seconds, umask.

A program that the last line starts by setsid needs a moment to leave the group. A machine that
halts sends SIGTERM (143) to all processes: in the pause it ends this one too, which leaves no code.
"""

_COMMAND: Final = """\
mask=$(umask)
umask 077
trouble() { echo "svcd: $1" >&2; exit 75; }
for tool in flock setsid sha256sum timeout; do
    command -v $tool >/dev/null || trouble "the machine has no program $tool"
done
folder=$HOME/.svcd/scripts/$key run=$HOME/.svcd/scripts/$key/$request
new=$folder/new.$$ lock=$folder/lock
mkdir -p "$folder" && true >>"$lock" && cat >"$new" || trouble "cannot write to $folder"
exec 9>>"$lock"
if flock -n 9 && [ ! -e "$folder/done" ] && [ ! -e "$run/code" ]; then
    [ "$(sha256sum <"$new")" = "$sha256  -" ] || trouble "the script came with other bytes"
    for old in "$folder"/*/group; do
        stop "$old" || trouble "end the programs of an earlier run: process group $group"
    done
    rm -rf "$run"
    mkdir "$run" && mv "$new" "$run/script" && chmod 700 "$run/script" && mkfifo "$run/pipe" ||
        trouble "cannot write to $run"
    setsid sh -c "$supervisor" "$run" "$deadline" "$mask" </dev/null >/dev/null 2>&1 &
fi
rm -f "$new"
exec 9>&-
flock -w "$wait" "$lock" true || trouble "the script is not done within $wait s"
cat "$run/output" 2>/dev/null
[ ! -e "$folder/done" ] || exit 0
read -r code note 2>/dev/null <"$run/code" || trouble "the script was interrupted"
if [ -n "$note" ]; then echo "$note"; fi
exit "$code"
"""


def command(step: RunScript, cluster: Cluster, deadline_s: float) -> str:
    """The command whose stdin is the script. It takes at most some seconds more than `deadline_s`.

    It ends with the exit code of the script, and prints the last part of its output. The script
    runs at most once for each request, and not after it has succeeded.
    """
    values = {
        "key": f"{step.instance}-{step.number}-{step.script.sha256}",
        "request": str(cluster.generation),
        "sha256": step.script.sha256,
        "deadline": f"{deadline_s:.0f}",
        "wait": f"{deadline_s + _WAIT_S:.0f}",
        "supervisor": _SUPERVISOR,
    }
    exported = _environment(step, cluster)
    lines = [f": svcd-script {shlex.quote(step.script.name)} {step.machine}"]
    lines += [f"{name}={shlex.quote(value)}" for name, value in values.items()]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in exported.items()]
    return "\n".join(lines) + "\n" + _STOP + _COMMAND


def _environment(step: RunScript, cluster: Cluster) -> Mapping[str, str]:
    group, instance = next(
        (group, instance)
        for group in cluster.node_groups
        for instance in group.instances
        if instance.instance_id == step.instance
    )
    return {
        "SVCD_CLUSTER": cluster.name,
        "SVCD_CLUSTER_ID": cluster.id,
        "SVCD_GROUP": group.name,
        "SVCD_MACHINE": instance.instance_name,
        "SVCD_INDEX": str(instance.index),
        "SVCD_PROCESSES": ",".join(group.node_processes),
    }


def interruption(result: CommandResult) -> str:
    """The reason why the script has no end yet and is to run again; "" when it has ended."""
    if result.exit_code is None:
        return f"signal {result.signal}"
    *before, said = visible(result.stderr.strip()).split("\n")[-2:]
    if result.exit_code != _TROUBLE or not said.startswith("svcd: "):
        return ""
    parts = [said.removeprefix("svcd: "), *before]
    return ": ".join(parts + [last_lines(result)] * bool(result.stdout.strip()))


def last_lines(result: CommandResult) -> str:
    """The end of the output for people: at most 20 lines and 1,500 characters."""
    lines = (result.stdout.strip() or result.stderr.strip()).splitlines()
    return visible("\n".join(lines[-_LINES:]))[-_CHARACTERS:]
