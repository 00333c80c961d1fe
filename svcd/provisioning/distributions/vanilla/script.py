"""The shell script that starts, checks and stops the daemons of a machine.

`daemon start NAME` returns at once and may be repeated. The daemon outlives the session. The script
identifies a daemon by its pid file and by a tag in its environment. So it does not take another
process for the daemon when the system has reused the process id.
"""

from __future__ import annotations

import ipaddress
import shlex
from collections.abc import Iterator
from urllib.parse import quote

from svcd.model.cluster import Cluster
from svcd.provisioning.distributions.spi import Machine
from svcd.provisioning.distributions.vanilla.daemons import (
    DAEMONS,
    NAMENODE,
    OOZIE,
    SPARKCONNECT,
    SPARKHISTORY,
)
from svcd.provisioning.distributions.vanilla.layout import heap_mib, layout
from svcd.provisioning.distributions.vanilla.spark import python_of_workers

_CONNECT_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_HISTORY_SERVER = "org.apache.spark.deploy.history.HistoryServer"

_HEAD = """\
#!/bin/sh
# Made by svcd.
# daemon start|alive|stop NAME | listens|unused NAME PORT | await NAME PORT SECONDS | free |
#   admit hdfs|yarn
. {environment} || exit 2
verb=${{1:-}} name=${{2:-}}
pid_file=$SVCD_BASE/run/$name.pid
log=$SVCD_BASE/logs/$name.log
tag=$SVCD_BASE:$name

mkdir -p "$SVCD_BASE/run" "$SVCD_BASE/logs" "$SVCD_BASE/tmp" "$SVCD_BASE/oozie" || exit 2

alive() {{
  pid=
  [ -s "$pid_file" ] && read -r pid <"$pid_file"
  [ -n "$pid" ] || return 1
  for _ in 1 2 3; do
    environment=$({{ tr '\\000' '\\n' <"/proc/$pid/environ"; }} 2>/dev/null)
    [ -z "$environment" ] || break
    kill -0 "$pid" 2>/dev/null || return 1
    sleep 0.1 # the environment is empty while a program replaces another one in the process
  done
  printf '%s\\n' "$environment" | grep -qxF "SVCD_DAEMON=$tag"
}}

listeners() {{ # PORTS: port and socket of each program that listens on them at this machine
  connections "$1" 0A
}}

connections() {{ # PORTS STATE: port and socket of each connection of these ports in this state
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
    awk -v at="({address}|00000000):($1)\\$" -v state="$2" \\
      '$4 == state && $2 ~ at {{ print substr($2, length($2) - 3), $10 }}'
}}

listens() {{ # PORT: whether the daemon, and no other program, listens there
  files=$(ls -l "/proc/$pid/fd" 2>/dev/null)
  for socket in $(listeners "$(printf '%04X' "$1")" | cut -d ' ' -f 2); do
    case $files in *"socket:[$socket]"*) return 0 ;; esac
  done
  return 1
}}

sockets() {{ # of all daemons of this machine
  for pid_file in "$SVCD_BASE"/run/*.pid; do
    name=${{pid_file##*/}} name=${{name%.pid}} tag=$SVCD_BASE:${{name%.pid}}
    alive && ls -l "/proc/$pid/fd"
  done 2>/dev/null | sed -n 's/.*socket:\\[\\([0-9]*\\)\\].*/\\1/p'
}}

strangers() {{ # a line for each other program on a port of this machine's daemons
  taken=$(listeners {ports})
  [ -n "$taken" ] || return 0
  own=$(sockets)
  echo "$taken" | while read -r port socket; do
    echo "$own" | grep -qx "$socket" && continue
    pid=$(find /proc/[0-9]*/fd -lname "socket:\\[$socket\\]" 2>/dev/null | head -n 1)
    pid=${{pid#/proc/}} pid=${{pid%%/*}} who="a program of another user"
    [ -z "$pid" ] ||
      who="process $pid ($({{ tr '\\000' ' ' <"/proc/$pid/cmdline"; }} 2>/dev/null | cut -c 1-80))"
    echo "port $(printf '%d' "0x$port") is taken by $who"
  done
}}
{hosts}
unformatted() {{ # FOLDER...: true where no name node has ever served
  [ ! -e "$SVCD_BASE/run/formatted" ] || return 1
  for folder in "$@"; do
    for edits in "$folder"/current/edits_*; do
      [ ! -e "$edits" ] || return 1
    done
  done
}}

launch() {{ # HEAP PROGRAM ARGUMENT...
  heap=$1
  shift
  cd "$SVCD_BASE/tmp" || exit 2
  export SVCD_DAEMON="$tag" HADOOP_ROOT_LOGGER=INFO,file
  export HADOOP_HEAPSIZE="$heap" YARN_HEAPSIZE="$heap" OOZIE_HEAPSIZE="$heap"
  export SPARK_DAEMON_MEMORY="$heap" SPARK_DRIVER_MEMORY="$heap"
  export HADOOP_OPTS="$HADOOP_OPTS -Dsvcd.daemon=$name"
  setsid nohup "$@" >>"$log" 2>&1 </dev/null &
  echo $! >"$pid_file.new" && mv "$pid_file.new" "$pid_file"
  n=0 # until the process is no copy of this shell, whose environment has no tag
  until alive || [ $n -ge 50 ] || ! kill -0 "$pid" 2>/dev/null; do
    n=$((n + 1))
    sleep 0.1
  done
}}

case $verb:$name in
  free:)
    command -v awk >/dev/null || {{ echo "daemon: awk is missing on this machine" >&2; exit 2; }}
    taken=$(strangers)
    [ -z "$taken" ] || {{ echo "$taken" >&2; exit 1; }}
    ;;
  listens:?*)
    alive || {{ echo "$name is not running" >&2; exit 1; }}
    listens "$3" || {{ echo "$name does not listen on port $3 (yet)" >&2; exit 1; }}
    ;;
  unused:?*)
    alive && listens "$3" || {{ echo "$name does not run, or not listen on port $3" >&2; exit 1; }}
    clients=$(connections "$(printf '%04X' "$3")" 01 | wc -l)
    [ "$clients" -eq 0 ] || {{ echo "connections of clients to $name: $clients" >&2; exit 1; }}
    ;;
  await:?*)
    until=$(($(date +%s) + $4)) # svcd has given up by then, and nothing else ends this loop
    while alive; do
      listens "$3" && exit 0
      [ "$(date +%s)" -lt "$until" ] ||
        {{ echo "$name has not listened on port $3 for $4 s" >&2; exit 1; }}
      sleep 0.25
    done
    echo "$name has died" >&2
    exit 1
    ;;
  alive:?*) alive || {{ echo "$name is not running" >&2; exit 1; }} ;;
  stop:?*)
    alive || exit 0
    kill "$pid"
    n=0
    while alive; do
      n=$((n + 1))
      [ "$n" -lt 100 ] || kill -9 "$pid"
      [ "$n" -lt 150 ] || exit 1
      sleep 0.1
    done
    ;;
  start:?*)
    alive && exit 0
    case $name in
"""

_TAIL = """\
      *) echo "daemon: $name is not a daemon of this machine" >&2; exit 2 ;;
    esac
    ;;
  admit:hdfs | admit:yarn)
    # the machines in the list have left; a new machine may have the address of one of them.
    # YARN also has a list of those that may come
    list=$HADOOP_CONF_DIR/exclude.$name
    [ -s "$list" ] || [ "$name" = yarn ] || exit 0
    : >"$list.new" && cp "$list" "$list.last" && mv "$list.new" "$list" || exit 1
    HADOOP_CLIENT_HEAPSIZE=64 {hadoop} org.svcd.hadoop.RefreshNodes "$name" ||
      {{ mv "$list.last" "$list"; exit 1; }}
    ;;
  *)
    echo "usage: daemon start|alive|stop NAME | listens NAME PORT |" \
      "await NAME PORT SECONDS | free | admit hdfs|yarn" >&2
    exit 2
    ;;
esac
"""


# maps the host's own name to the machine's own address: only the machine knows that name
_HOSTS = """
hosts=$HADOOP_CONF_DIR/hosts
{{ echo {address} {address} "$(uname -n)" && echo 127.0.0.1 localhost; }} >"$hosts.$$" &&
  mv "$hosts.$$" "$hosts" || exit 2
"""


def daemon_script(cluster: Cluster, machine: Machine) -> str:
    """The text of `bin/daemon` of a machine."""
    place = layout(machine)
    hadoop = shlex.quote(f"{machine.prefix}/bin/hadoop")
    rows = [DAEMONS[process] for process in machine.processes if process in DAEMONS]
    ports = [f"{port:04X}" for daemon in rows for port in daemon.ports]
    head = _HEAD.format(
        environment=shlex.quote(f"{place.base}/env.sh"),
        hosts=_HOSTS.format(address=machine.address) if machine.root else "",
        address=_hexadecimal(machine.address),
        ports=shlex.quote("|".join(ports) or "none"),
    )
    tail = _TAIL.format(hadoop=hadoop)
    return head + "".join(_cases(cluster, machine)) + tail


def _hexadecimal(address: str) -> str:
    """An address as the kernel writes it in /proc/net/tcp: words of four bytes, each reversed."""
    try:
        packed = ipaddress.ip_address(address).packed
    except ValueError:  # the address is not known yet
        return "none"
    return b"".join(packed[at : at + 4][::-1] for at in range(0, len(packed), 4)).hex().upper()


def _cases(cluster: Cluster, machine: Machine) -> Iterator[str]:
    for process in machine.processes:
        if process in DAEMONS:
            program = shlex.quote(f"{machine.prefix}/bin/{DAEMONS[process].program}")
            heap = heap_mib(machine, process)
            if process == OOZIE:
                yield from _oozie(machine, program, heap)
            elif process == SPARKHISTORY:
                yield f"      {process})\n"
                yield from _spark(machine)
                yield f"        launch {heap} {program} {_HISTORY_SERVER} ;;\n"
            elif process == SPARKCONNECT:
                yield from _connect(machine, program, heap)
            elif process == NAMENODE:
                yield from _name_node(cluster, machine, program, heap)
            else:
                yield f"      {process}) launch {heap} {program} {process} ;;\n"


def _name_node(cluster: Cluster, machine: Machine, program: str, heap: int) -> Iterator[str]:
    """The start of a name node. One process formats and then serves, which saves one JVM start."""
    folders = " ".join(map(shlex.quote, layout(machine).data("hdfs/namenode")))
    identity = shlex.quote(f"CID-{cluster.id}")
    yield f"      {NAMENODE})\n"
    yield f"        if unformatted {folders}; then\n"
    yield f"          launch {heap} {program} org.svcd.hadoop.FormatAndServe {identity} \\\n"
    yield '            "$SVCD_BASE/run/formatted"\n'
    yield "        else\n"
    yield f"          launch {heap} {program} {NAMENODE}\n"
    yield "        fi ;;\n"


def _oozie(machine: Machine, program: str, heap: int) -> Iterator[str]:
    options = f"-Duser.home={machine.home}"
    if machine.root:
        options += f" -Dsvcd.address={machine.address}"
    yield f"      {OOZIE})\n"
    yield "        log=$SVCD_BASE/logs/oozie.out\n"
    yield '        export OOZIE_CONF_DIR="$HADOOP_CONF_DIR/oozie" OOZIE_LOG_DIR="$SVCD_BASE/logs"\n'
    yield '        export OOZIE_DATA_DIR="$SVCD_BASE/oozie"\n'
    yield f"        export OOZIE_OPTS={shlex.quote(options)}\n"
    yield f"        export OOZIE_HTTP_HOSTNAME={shlex.quote(machine.address)}\n"
    yield f"        launch {heap} {program} ;;\n"


def _spark(machine: Machine) -> Iterator[str]:
    """The environment of a daemon of Spark, which does not know the log settings of Hadoop."""
    file = shlex.quote(f"-Dlog4j2.configurationFile=file:{quote(layout(machine).spark_log4j)}")
    yield f'        export HADOOP_OPTS="$HADOOP_OPTS "{file}\n'


def _connect(machine: Machine, program: str, heap: int) -> Iterator[str]:
    """The start of Spark Connect. Its token is in the environment, which other users cannot see.

    A server whose memory is full ends, because its answers would be wrong.
    """
    place = layout(machine)
    yield f"      {SPARKCONNECT})\n"
    yield from _spark(machine)
    yield '        export HADOOP_OPTS="$HADOOP_OPTS -XX:+ExitOnOutOfMemoryError"\n'
    if machine.root:
        yield f"        export SPARK_LOCAL_HOSTNAME={shlex.quote(machine.address)}\n"
    yield f"        read -r SPARK_CONNECT_AUTHENTICATE_TOKEN <{shlex.quote(place.connect_token)}"
    yield " || exit 2\n"
    yield "        export SPARK_CONNECT_AUTHENTICATE_TOKEN\n"
    yield f"        export PYSPARK_PYTHON={shlex.quote(python_of_workers(machine))}\n"
    settings = shlex.quote(place.connect_conf)
    yield f"        launch {heap} {program} --properties-file {settings} \\\n"
    yield f"          --class {_CONNECT_SERVER} spark-internal ;;\n"


def daemon(machine: Machine, *words: str) -> str:
    """The shell command that calls the daemon script of a machine."""
    return " ".join(map(shlex.quote, ("sh", layout(machine).daemon, *words)))
