"""Machines whose daemon or demo was killed: how a person learns of them, and what ends them."""

from __future__ import annotations

import signal
from pathlib import Path

from svcd.runtime.state_dir import StateFolder, StateFolderError
from tests.live.test_main_job import ACTIVE_S, vanilla_prefix
from tests.support.live import Tenant, machine_folders
from tests.support.processes import DaemonCase, machine_processes, run, until
from tests.support.sample import SLOW


class DaemonTests(DaemonCase):
    """A daemon that is killed and not started again."""

    async def test_machines_are_named_and_ended(self) -> None:
        """By commands and the start of another daemon; the first one's next start goes on."""
        daemon = self.daemon()
        tenant, state = Tenant(await daemon.start()), str(daemon.state)
        cluster_id = await tenant.new_cluster("mine", 1)
        await tenant.until_active(cluster_id)
        server, _ = await tenant.servers()
        folder = daemon.state / "cloud" / "machines" / str(server["id"])
        self.program("/bin/sleep", "600", environment={"SVCD_MACHINE_ROOT": str(folder)})

        refused = await run("svcd", "machines", "rm", state, "--yes")
        self.assertEqual(refused.code, 4, refused)
        self.assertIn(f"svcd cluster rm CLUSTER --state-dir {state} ends", refused.err)
        await daemon.kill()
        told = rf"Left over: .*{state}: 1 machine with \d+ MiB runs without a daemon"
        unreachable = await run("svcd", "status", "--state-dir", state)
        self.assertEqual(unreachable.code, 5, unreachable)
        self.assertRegex(unreachable.err, told)
        other = self.daemon()
        await other.start()
        self.assertRegex(other.said, rf"warn .* {told}")
        status = await run("svcd", "status", "--state-dir", str(other.state))
        self.assertIn(f"or end them: svcd machines rm {state}", status.err)
        flags = [word for pair in other.settings.items() for word in ("--set", "=".join(pair))]
        doctor = await run("svcd", "doctor", *flags)
        self.assertIn(f"start its daemon, or: svcd machines rm {state}", doctor.out, doctor.err)

        done = await run("svcd", "machines", "rm", state, "--yes")
        self.assertEqual((done.code, machine_processes(daemon.state)), (0, []), done)
        tenant = Tenant(await daemon.start())
        await tenant.done("DELETE", f"/clusters/{cluster_id}")
        await tenant.until_gone(cluster_id)
        self.assertEqual((await tenant.servers(), machine_folders(daemon.state)), ([], []))


class DemoTests(DaemonCase):
    """`svcd demo` with real Hadoop."""

    timeout = 600
    skip = SLOW

    async def test_killed_demo_leaves_nothing(self) -> None:
        """kill -9 while a job runs: neither its daemon nor a process of Hadoop is left."""
        prefix = vanilla_prefix()
        state = Path(self.mktemp()).absolute()
        program = self.program("svcd", "demo", "--state-dir", str(state), "--image", str(prefix))

        async def works() -> bool:
            self.assertIsNone(program.code, program.out + program.err)
            return "job is RUNNING" in program.out

        await until(works, "a job that runs", ACTIVE_S)
        self.assertGreater(len(machine_processes(state)), 5)
        program.signal(signal.SIGKILL)
        await program.end(60)

        async def ended() -> bool:
            try:
                StateFolder(state).release()
            except StateFolderError:
                return False  # the daemon still runs
            return machine_processes(state) == []

        await until(ended, "the end of daemon and machines", 40)
