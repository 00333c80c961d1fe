"""One seed, one history: what two tenants ask, what befalls the daemons, and how it ends.

Every third seed has two daemons on one database, sometimes three.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from svcd.embedded.faults import Effect, FaultRule
from svcd.model.ids import timestamp
from svcd.testing import FakeService
from tests.simulation import leftovers, requests, rest
from tests.simulation.answers import ANSWERS
from tests.simulation.world import USERS, Freeze, Heard, World

SETTINGS: Mapping[str, str] = {
    "provisioning.spawn_deadline_s": "400",
    "provisioning.prepare_deadline_s": "150",
    "provisioning.configure_deadline_s": "150",
    "provisioning.start_deadline_s": "150",
    "provisioning.decommission_deadline_s": "200",
    "provisioning.delete_deadline_s": "400",
    "provisioning.poll_s": "3",
    "workflow.poll_s": "10",
    "workflow.submit_deadline_s": "300",
    "workflow.manual_deadline_s": "100",
    "workflow.unreachable_deadline_s": "300",
}
LEASES: tuple[Mapping[str, str], ...] = (
    {"database.lease_s": "5", "database.renew_s": "1.5", "database.rescan_s": "10"},
    {"database.lease_s": "12", "database.renew_s": "4", "database.rescan_s": "15"},
)
TENANTS = tuple(USERS)
MOST_CLUSTERS = 3
REST_S = 6 * 3600.0
MOST_SLOW_S = 25.0
"""Of one call; a call that takes more than its time-out is a rule's to make."""

PLACES = (
    ("compute", "POST", "/servers$"),
    ("compute", "GET", "/servers/detail"),
    ("compute", "DELETE", "/servers/"),
    ("compute", "POST", "attachments"),
    ("compute", "", ""),
    ("network", "POST", ""),
    ("network", "", ""),
    ("volume", "POST", ""),
    ("volume", "", ""),
    ("identity", "POST", "/tokens"),
    ("identity", "", "trusts"),
    ("identity", "", "application_credentials"),
    ("image", "", ""),
    ("engine", "POST", "/jobs"),
    ("engine", "GET", ""),
    ("engine", "PUT", ""),
    ("hdfs", "PUT", ""),
    ("hdfs", "DELETE", ""),
    ("ssh", "", ""),
    ("ssh", "", "svcd-facts"),
    ("ssh", "", "svcd-script"),
    ("probe", "", ""),
    ("yarn", "", ""),
    ("object-store", "", ""),
    ("store", "tx", ""),
    ("store", "read", ""),
    ("store", "lease", ""),
)
EFFECTS = (
    Effect.REFUSED,
    Effect.RESET_BEFORE,
    Effect.RESET_AFTER,
    Effect.TIMEOUT_BEFORE,
    Effect.TIMEOUT_AFTER,
    Effect.GARBAGE,
    Effect.DELAY,
    Effect.ANSWER,
    Effect.ANSWER,
    Effect.ANSWER,
)


@frozen(kw_only=True)
class Outcome:
    """seed, its story, and what did not hold ([] when all is well)."""

    seed: int
    story: tuple[str, ...]
    breaches: tuple[str, ...]
    calls: int = 0
    crashes: int = 0
    stops: int = 0
    freezes: int = 0
    daemons: int = 1


def run(seed: int) -> Outcome:
    """The history of a seed. The same seed gives the same story, in every process."""
    history = History(seed)
    try:
        history.happen()
    except Exception as error:  # the history itself is what fails: it is told with its seed
        history.world.watch.breach(f"{type(error).__name__}: {error}")
        raise
    finally:
        history.world.close()
    world = history.world
    return Outcome(
        seed=seed,
        story=tuple(world.story),
        breaches=tuple(world.watch.breaches),
        calls=len(world.calls),
        crashes=world.crashes,
        stops=world.stops,
        freezes=world.freezes,
        daemons=len(world.processes),
    )


class History:
    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(f"history {seed}")
        settings = {
            **SETTINGS,
            "auth.mode": rng.choice(["none", "keystone"]),
            "embedded.boot_s": rng.choice(["0", "0.5", "8"]),
            "embedded.list_lag_s": rng.choice(["0", "0", "2", "15"]),
            "embedded.delete_s": rng.choice(["0", "0.5", "12"]),
            "embedded.volume_s": rng.choice(["0", "1", "6"]),
            "embedded.token_ttl_s": rng.choice(["86400", "86400", "900"]),
            "embedded.quota_instances": rng.choice(["200", "200", "5"]),
            "provisioning.on_failure": rng.choice(["remove", "remove", "keep"]),
            "provisioning.max_idle_s": rng.choice(["0", "0", "0", "900"]),
            "provisioning.max_age_s": rng.choice(["0", "0", "0", "1800"]),
        }
        daemons = rng.choice([2, 2, 2, 3]) if seed % 3 == 2 else 1
        if daemons > 1:
            settings |= rng.choice(LEASES)
        self.world = World(seed, settings, daemons)
        self.world.retries = 2
        self.excused: set[str] = set()
        self.clusters: dict[str, list[str]] = {t: [] for t in TENANTS}
        self.executions: dict[str, list[str]] = {t: [] for t in TENANTS}
        self.jobs: dict[str, Sequence[str]] = {}
        self.sources: dict[str, tuple[str, str]] = {}
        self.number = 0
        told = {k: v for k, v in settings.items() if k not in SETTINGS}
        shown = " ".join(f"{k}={v}" for k, v in told.items())
        self.world.tell(f"seed {seed}: {daemons} x {shown}")
        self.slow = rng.choice([0.0, 0.0, 0.1, 0.4])
        self.world.weather = self._weather
        self.world.downtime_s = lambda: rng.choice([0.0, 0.5, 5.0, 40.0])
        self.slow_store = rng.choice([0.0, 0.0, 0.02, 0.3]) if daemons > 1 else 0.0
        self.world.server.delay = self._store_delay

    def happen(self) -> None:
        for tenant in TENANTS:
            self._prepare(tenant)
        self._create(self.rng.choice(TENANTS))
        for _ in range(self.rng.randint(4, 14)):
            self._step()
            self.world.advance(self.rng.choice([0.0, 0.0, 0.1, 0.5, 2.0, 6.0, 20.0, 60.0]))
        self._calm_down()
        self._come_to_rest()
        self._let_end()
        for each in rest.at_rest(self.world, frozenset(self.excused)):
            self.world.watch.breach(each)
        for each in leftovers.at_rest(self.world, frozenset(self.excused)):
            self.world.watch.breach(each)
        for each in rest.tenants(self.world):
            self.world.watch.breach(each)
        self._end_everything()
        for each in leftovers.removed(self.world):
            self.world.watch.breach(each)
        for each in rest.all_gone(self.world, frozenset(self.excused)):
            self.world.watch.breach(each)
        self._stop_everything()
        for each in rest.stopped(self.world):
            self.world.watch.breach(each)

    # ---- the outside ----

    def _weather(self, heard: Heard) -> FaultRule | None:
        if heard.where == "store" or self.rng.random() >= self.slow:
            return None
        delay = min(MOST_SLOW_S, self.rng.expovariate(1.0) ** 3)
        effect = self.rng.choice([Effect.DELAY, Effect.LATE])
        if effect is Effect.LATE and heard.where == "hdfs":
            self.world.late.add(heard.path.partition("/webhdfs/v1")[2].partition("?")[0])
        return FaultRule(where=heard.where, effect=effect, delay_s=delay)

    def _store_delay(self) -> float:
        if self.slow_store == 0.0 or self.rng.random() < 0.5:
            return 0.0
        return min(2.0, self.slow_store * self.rng.expovariate(1.0) ** 2)

    def _calm_down(self) -> None:
        """No trouble any more."""
        self.world.tell("calm")
        self.slow = self.slow_store = 0.0
        self.world.plan.clear()
        self.world.svcd.faults.clear()
        for cluster_id in list(self.world.strangers):
            self.world.send_away(cluster_id)

    # ---- requests ----

    def _prepare(self, tenant: str) -> None:
        """A job and its data, in good weather."""
        before = self.slow, self.slow_store
        self.slow = self.slow_store = 0.0
        job_id, self.sources[tenant] = requests.job(self.world, tenant)
        self.jobs[tenant] = [job_id, job_id, requests.stored_job(self.world, tenant)]
        self.slow, self.slow_store = before

    def _step(self) -> None:
        """Something happens."""
        choices: list[tuple[int, Callable[[str], None]]] = [
            (14, self._create),
            (10, self._scale),
            (7, self._delete),
            (5, self._live),
            (6, self._force),
            (14, self._execute),
            (4, self._execute_transient),
            (6, self._cancel),
            (4, self._delete_execution),
            (3, self._refresh),
            (3, self._image),
            (4, self._retry),
            (10, self._crash_soon),
            (7, self._stop_soon),
            (9 if len(self.world.processes) > 1 else 2, self._freeze_soon),
            (2, self._store_away),
            (12, self._fault),
            (3, self._break_boot),
            (2, self._take_server),
            (3, self._stranger),
        ]
        tenant = self.rng.choice(TENANTS)
        act = self.rng.choices([a for _, a in choices], [w for w, _ in choices])[0]
        act(tenant)
        self._learn()

    def _learn(self) -> None:
        """Of what was accepted meanwhile, also by a request without an answer."""
        for id_, row in rest.clusters(self.world).items():
            if id_ not in self.clusters[row["tenant_id"]]:
                self.clusters[row["tenant_id"]].append(id_)
                self.world.name(id_, row["name"])
        for id_, row in rest.executions(self.world).items():
            if id_ not in self.executions[row["tenant_id"]]:
                self.executions[row["tenant_id"]].append(id_)

    def _some_cluster(self, tenant: str) -> str | None:
        """Of the tenant as a rule; sometimes of another, which must not work."""
        self._learn()
        owner = tenant if self.rng.random() < 0.95 else self.rng.choice(TENANTS)
        found = self.clusters[owner]
        return self.rng.choice(found) if found else None

    def _body(self, name: str) -> dict[str, Any]:
        rng = self.rng
        worker = requests.group("worker", rng.choice([1, 1, 2, 3]))
        if rng.random() < 0.3:
            worker |= {"volumes_per_node": rng.choice([1, 2]), "volumes_size": 10}
        if rng.random() < 0.3:
            worker["floating_ip_pool"] = "public"
        if self.number % 3 == 0:
            worker["init_scripts"] = ["a.pig"]
        more = {"anti_affinity": ["datanode"]} if rng.random() < 0.2 else {}
        if rng.random() < 0.25:
            more |= self._life()
        return requests.cluster(name, worker, **more)

    def _life(self) -> dict[str, Any]:
        """When svcd is to delete a cluster by itself."""
        rng = self.rng
        life = {"idle_delete_s": rng.choice([0, 60, 200, 900])} if rng.random() < 0.7 else {}
        return life | ({"max_age_s": rng.choice([0, 100, 600, 1800])} if rng.random() < 0.4 else {})

    def _create(self, tenant: str) -> None:
        if len(rest.clusters(self.world)) >= MOST_CLUSTERS:
            return self._scale(tenant)
        self.number += 1
        name = f"{tenant}-{self.number}"
        self.world.ask(tenant, "POST", "/clusters", self._body(name), name=name)
        return None

    def _scale(self, tenant: str) -> None:
        cluster_id = self._some_cluster(tenant)
        if cluster_id is None:
            return
        if self.rng.random() < 0.25:
            self.number += 1
            group = requests.group(f"extra{self.number}", self.rng.choice([1, 2]))
            if self.rng.random() < 0.3:
                group |= {"volumes_per_node": 1}
            if self.number % 2 == 0:
                group |= {"init_scripts": ["a.pig"]}
            body: dict[str, Any] = {"add_node_groups": [group]}
        else:
            row = rest.clusters(self.world).get(cluster_id)
            groups = [g["name"] for g in row["node_groups"] if g["name"] != "master"] if row else []
            name = self.rng.choice(groups or ["worker"])
            body = {
                "resize_node_groups": [{"name": name, "count": self.rng.choice([0, 1, 2, 3, 4])}]
            }
        self.world.tell(f"{tenant} wants {body}")
        self.world.ask(tenant, "PUT", f"/clusters/{cluster_id}", body)

    def _live(self, tenant: str) -> None:
        """Somebody changes when a cluster ends, perhaps together with its size."""
        cluster_id = self._some_cluster(tenant)
        if cluster_id is None:
            return
        body = self._life()
        if self.rng.random() < 0.5:
            wait_s = self.rng.choice([-5.0, 30.0, 300.0, 1500.0])
            body["keep_until"] = timestamp(self.world.clock.seconds() + wait_s)
        if self.rng.random() < 0.2:
            body["resize_node_groups"] = [{"name": "worker", "count": self.rng.choice([1, 2, 3])}]
        self.world.tell(f"{tenant} wants {body}")
        self.world.ask(tenant, "PUT", f"/clusters/{cluster_id}", body)

    def _retry(self, tenant: str) -> None:
        failed = [
            i
            for i, r in rest.clusters(self.world).items()
            if r["status"] == "Error" and r["tenant_id"] == tenant
        ]
        if failed:
            self.world.ask(tenant, "PUT", f"/clusters/{self.rng.choice(failed)}", {})

    def _delete(self, tenant: str) -> None:
        cluster_id = self._some_cluster(tenant)
        if cluster_id is None:
            return
        forced = self.rng.random() < 0.2
        self.world.ask(
            tenant, "DELETE", f"/clusters/{cluster_id}" + ("?force=true" if forced else "")
        )

    def _force(self, tenant: str) -> None:
        """A deletion that cannot remove everything, or cannot even look, and need not."""
        cluster_id = self._some_cluster(tenant)
        if cluster_id is None:
            return
        rng = self.rng
        where = rng.choice(["compute", "network", "volume", "volume", "identity"])
        method = rng.choice(["DELETE", "DELETE", "DELETE", ""])
        rule = self.world.svcd.faults.add(where=where, method=method, status=rng.choice([409, 500]))
        self.world.tell(f"{where} {method} is stuck")
        self.world.ask(tenant, "DELETE", f"/clusters/{cluster_id}?force=true")
        self.world.clock.callLater(rng.choice([40.0, 150.0, 300.0]), rule.remove)
        self.world.advance(rng.choice([0.0, 60.0, 150.0]))

    def _execution_body(self, tenant: str) -> dict[str, Any]:
        outcomes = ["succeed", "succeed", "succeed", "fail", "error", "suspend", "hang", "launcher"]
        run_s = str(self.rng.choice([0, 1, 5, 30]))
        outcome = self.rng.choice(outcomes)
        return requests.execution(self.sources[tenant], run_s=run_s, outcome=outcome)

    def _job(self, tenant: str) -> str:
        """The one with its script in svcd, as a rule, or in the object store."""
        return self.rng.choice(self.jobs[tenant])

    def _execute(self, tenant: str) -> None:
        cluster_id = self._some_cluster(tenant)
        if cluster_id is None:
            return
        self._execute_on(tenant, cluster_id)

    def _execute_on(self, tenant: str, cluster_id: str) -> None:
        self.number += 1
        body = {"cluster_id": cluster_id, **self._execution_body(tenant)}
        self.world.ask(
            tenant, "POST", f"/jobs/{self._job(tenant)}/execute", body, name=f"run-{self.number}"
        )

    def _execute_transient(self, tenant: str) -> None:
        if len(rest.clusters(self.world)) >= MOST_CLUSTERS:
            return
        self.number += 1
        cluster = self._body(f"{tenant}-t{self.number}")
        body = {"cluster": cluster, **self._execution_body(tenant)}
        self.world.ask(
            tenant, "POST", f"/jobs/{self._job(tenant)}/execute", body, name=f"run-{self.number}"
        )

    def _some_execution(self, tenant: str) -> str | None:
        self._learn()
        found = self.executions[tenant]
        return self.rng.choice(found[-4:]) if found else None

    def _cancel(self, tenant: str) -> None:
        id_ = self._some_execution(tenant)
        if id_ is not None:
            self.world.ask(tenant, "GET", f"/job-executions/{id_}/cancel")

    def _refresh(self, tenant: str) -> None:
        id_ = self._some_execution(tenant)
        if id_ is not None:
            self.world.ask(tenant, "GET", f"/job-executions/{id_}/refresh-status")

    def _delete_execution(self, tenant: str) -> None:
        id_ = self._some_execution(tenant)
        if id_ is not None:
            self.world.ask(tenant, "DELETE", f"/job-executions/{id_}")

    def _image(self, tenant: str) -> None:
        image = f"/images/{FakeService.image_id}"
        what = self.rng.choice(["tag", "untag", "register", "unregister"])
        if what in ("tag", "untag"):
            self.world.ask(tenant, "POST", f"{image}/{what}", {"tags": ["blue"]})
        elif what == "register":
            self.world.ask(tenant, "POST", image, {"username": "svcd"})
        elif self.rng.random() < 0.3:
            self.world.ask(tenant, "DELETE", image)
            self.world.advance(1.0)
            self.world.ask(tenant, "POST", image, {"username": "svcd"})

    # ---- trouble ----

    def _soon(self) -> int:
        """The number of one of the next calls to the outside."""
        return len(self.world.calls) + self.rng.choice([1, 2, 3, 5, 8, 13, 21, 34, 55])

    def _crash_soon(self, _: str) -> None:
        """Before or after the effect of a call."""
        self.world.plan.crashes[self._soon()] = self.rng.random() < 0.6

    def _stop_soon(self, _: str) -> None:
        """At a call, or at once; sometimes it dies of something else meanwhile."""
        world, rng = self.world, self.rng
        if rng.random() < 0.6:
            world.plan.stops.add(self._soon())
        else:
            by = rng.choice(world.processes)
            world.stop(by)
            if by.state == "stopping" and rng.random() < 0.4:
                line = by.line
                world.clock.callLater(
                    rng.choice([0.0, 0.5, 3.0, 9.0, 12.0]),
                    lambda: world.crash(by) if by.line is line else None,
                )
        if rng.random() < 0.3:
            self._crash_soon("")

    def _freeze_soon(self, _: str) -> None:
        """Before a call, or after it was sent."""
        world, rng = self.world, self.rng
        freeze = Freeze(
            before=rng.random() < 0.5,
            seconds=rng.choice([0.5, 3.0, 5.0, 8.0, 13.0, 20.0, 70.0]),
            timers_first=rng.random() < 0.5,
        )
        if rng.random() < 0.8:
            world.plan.freezes[self._soon()] = freeze
        else:
            world.freeze(rng.choice(world.processes), freeze)

    def _store_away(self, _: str) -> None:
        """The database goes away for a while, with all connections."""
        world = self.world
        if world.server.away:
            return
        seconds = self.rng.choice([0.2, 4.0, 30.0])
        world.tell(f"the database is away for {seconds:.1f} s")
        world.server.go_away()

        def back() -> None:
            world.tell("the database is back")
            world.server.come_back()

        world.clock.callLater(seconds, back)

    def _fault(self, _: str) -> None:
        """Calls of one kind go wrong for a while."""
        rng = self.rng
        where, method, path = rng.choice(PLACES)
        effect = rng.choice(EFFECTS)
        times = rng.choice([1, 1, 2, 3, 8])
        after = rng.choice([0, 0, 1, 3])
        more: dict[str, Any] = {}
        shown = effect.value
        if effect is Effect.ANSWER:
            kind, answer = rng.choice(ANSWERS)
            more, shown = {**answer(where)}, f"{shown} {kind}"
        elif effect is Effect.DELAY:
            more = {"delay_s": rng.choice([1.0, 6.0, 25.0])}
        self.world.svcd.faults.add(
            where=where, method=method, path=path, effect=effect, times=times, after=after, **more
        )
        self.world.tell(f"rule: {where} {method} {path} {shown} {times}x after {after}")

    def _break_boot(self, _: str) -> None:
        """A server that is being built goes to ERROR."""
        state = self.world.svcd.cloud.core.state
        building = [s for s in state.servers.values() if s.status == "BUILD"]
        if building:
            server = self.rng.choice(building)
            state.servers.put(
                evolve(server, status="ERROR", task_state=None, fault="No valid host was found.")
            )
            self.world.tell(f"server {server.name} goes to ERROR")

    def _take_server(self, tenant: str) -> None:
        """Somebody deletes a server."""
        state = self.world.svcd.cloud.core.state
        mine = [s for s in state.servers.values() if s.project_id == tenant]
        if not mine:
            return
        server = self.rng.choice(mine)
        self.excused.add(server.metadata.get("svcd_cluster_id", ""))
        self.world.tell(f"somebody deletes server {server.name}")
        self.world.ask_cloud(tenant, "DELETE", f"/compute/v2.1/servers/{server.id}")

    def _stranger(self, tenant: str) -> None:
        """For a while the engine of another cluster answers in place of a cluster's own."""
        cluster_id = self._some_cluster(tenant)
        if cluster_id is None:
            return
        world = self.world
        world.tell(f"a stranger has the address of the engine of {world.name(cluster_id)}")
        world.strangers.setdefault(cluster_id, world.now)
        world.svcd.engines.engine(cluster_id).cluster = "another"
        seconds = self.rng.choice([20.0, 150.0, 900.0])
        world.clock.callLater(seconds, lambda: world.send_away(cluster_id))
        world.advance(self.rng.choice([0.0, 100.0, 310.0]))
        self._execute_on(tenant, cluster_id)

    # ---- the end ----

    def _come_to_rest(self) -> None:
        """Everything ends by itself; what hangs for ever is cancelled by its owner."""
        world = self.world
        for _ in range(3):
            if not rest.quiet(world, 1500.0):
                break
            for id_, row in rest.executions(world).items():
                if row["status"] not in rest.TERMINAL:
                    world.ask(row["tenant_id"], "GET", f"/job-executions/{id_}/cancel")
        trouble = rest.quiet(world, REST_S)
        if trouble:
            world.watch.breach(f"no rest within {REST_S:.0f} s: {trouble}")
        world.advance(100.0)

    def _let_end(self) -> None:
        """Clusters whose time comes end by themselves, in good weather."""
        world = self.world
        at = max(map(rest.latest_end, rest.records(world)), default=0.0)
        while world.clock.seconds() < at:
            world.advance(60.0)
        trouble = rest.quiet(world, 1500.0)
        if trouble:
            world.watch.breach(f"no rest after the ends: {trouble}")
        for each in rest.overdue(world):
            world.watch.breach(each)

    def _end_everything(self) -> None:
        world = self.world
        for id_, row in rest.clusters(world).items():
            world.ask(row["tenant_id"], "DELETE", f"/clusters/{id_}")
        trouble = rest.quiet(world, 3000.0)
        if trouble:
            world.watch.breach(f"not all gone: {trouble}")
        world.advance(100.0)

    def _stop_everything(self) -> None:
        """Each process is told to end, one after the other."""
        world = self.world
        world.downtime_s = lambda: REST_S
        world.ending = True
        for each in world.processes:
            world.stop(each)
            world.advance(1.0)
        world.advance(60.0)
