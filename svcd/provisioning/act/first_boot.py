"""Runs a first-boot script on a machine. Thin; svcd.provisioning.decide.first_boot says how."""

from __future__ import annotations

import hashlib
from typing import Final

from svcd.model.fields import MOST_SCRIPT_BYTES
from svcd.model.ids import JobBinaryInternalId
from svcd.ports.store import Store, Tx
from svcd.provisioning.act.shells import Shells
from svcd.provisioning.decide import first_boot
from svcd.provisioning.decide.failures import Code
from svcd.provisioning.decide.steps import Done, Fail, Outcome, Retry, RunScript

COMMAND_S: Final = 40.0
"""Time of the command beside that of the script: to send the script and to wait for its end."""
_INTERRUPTED: Final = 5
"""Runs without an end after which the work fails."""


async def run_script(store: Store, shells: Shells, step: RunScript, deadline_s: float) -> Outcome:
    """Run the script, or wait for its end when it runs. Raises RemoteError."""
    script = step.script
    content = await store.read(lambda tx: _content(tx, script.internal_id))
    where = f"{step.what} on {step.machine}"
    if hashlib.sha256(content).hexdigest() != script.sha256:
        text = f"{where}: svcd no longer has the content that it had at the request"
        return Fail(code=Code.SCRIPT_FAILED, reason=text)
    command = first_boot.command(step, shells.cluster, deadline_s)
    timeout_s = deadline_s + COMMAND_S
    result = await shells.run(step.instance, command, stdin=content, timeout_s=timeout_s)
    if reason := first_boot.interruption(result):
        return Retry(code=Code.SCRIPT_FAILED, reason=f"{where}: {reason}", limit=_INTERRUPTED)
    said = first_boot.last_lines(result)
    if result.exit_code != 0:
        text = f"{where}: exit code {result.exit_code}" + (f": {said}" if said else "")
        return Fail(code=Code.SCRIPT_FAILED, reason=text)
    return Done(instances={step.instance: {"scripts_done": step.number + 1}}, text=said)


async def _content(tx: Tx, id_: JobBinaryInternalId) -> bytes:
    """The bytes of an internal binary, or of its beginning when it is longer than a script."""
    content = b""
    number = 0
    while len(content) <= MOST_SCRIPT_BYTES and (piece := await tx.internals.piece(id_, number)):
        content += piece
        number += 1
    return content
