"""The console over two daemons on one PostgreSQL, each killed under the open page.

A balancer hands each connection to the daemon that serves at the moment.
"""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.threads import blockingCallFromThread
from twisted.protocols.portforward import ProxyFactory

from tests.live.test_daemons import SharedCase
from tests.support.console import IGNORED, BrowserCase
from tests.support.live import Tenant
from tests.support.processes import Daemon, reactor
from tests.support.sample import SLOW

skip = SLOW

_STEP_MS = 60_000
_TEE = """(() => {
    const own = window.fetch;
    window.told = [];
    const note = async (stream) => {
        const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
        for (let rest = ""; ; ) {
            const { done, value } = await reader.read();
            if (done) return;
            const blocks = (rest + value).split("\\n\\n");
            rest = blocks.pop();
            for (const block of blocks) {
                const [, event] = /^event: (.*)$/m.exec(block) ?? [];
                const [, data] = /^data: (.*)$/m.exec(block) ?? [];
                if (event) window.told.push([event, JSON.parse(data)]);
            }
        }
    };
    window.fetch = async (address, options) => {
        const response = await own(address, options);
        if (!address.includes("/watch")) return response;
        const [first, second] = response.body.tee();
        note(second).catch(() => {});
        return new Response(first, { status: response.status, headers: response.headers });
    };
})()"""
"""Notes in `told` what the page reads of `watch`, over all connections."""


class TakeoverTests(BrowserCase, SharedCase):
    ignored = (*IGNORED, "net::ERR_")  # what Chromium says of the dead

    async def test_the_page_goes_on_at_the_other_daemon(self) -> None:
        """It says that it is not live, misses no change, gets none twice, and lists nothing anew.

        Then the other one is killed, and the first one comes back.
        """
        self.tenants = await self.shared(2, embedded__boot_s="1.0")
        self.balancer = ProxyFactory("127.0.0.1", 0)
        self.balancer.noisy = False
        port = reactor.listenTCP(0, self.balancer, interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        self.serve(self.daemons[0])
        self.base = f"http://127.0.0.1:{port.getHost().port}"
        await self.walk(self.takeovers)

    def serve(self, daemon: Daemon) -> None:
        """Hand all further connections to `daemon`."""
        self.balancer.port = int(daemon.endpoints["api"].rpartition(":")[2])

    def do(self, work: Any) -> Any:
        """The result of a coroutine that runs in the reactor's thread."""
        return blockingCallFromThread(reactor, lambda: Deferred.fromCoroutine(work))

    def takeovers(self, page: Any) -> None:
        page.set_default_timeout(_STEP_MS)
        first, second = self.tenants
        page.add_init_script(_TEE)
        page.goto("/console/")
        page.get_by_text("Live", exact=True).wait_for()
        clusters = [self.do(first.new_cluster("c0", 1))]
        with page.expect_response(lambda each: "/events" in each.url):
            page.get_by_role("link", name="c0").click()
        page.locator(".facts", has_text="Spawning").wait_for()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        self.do(self.daemons[0].kill())
        page.get_by_text("Reconnecting").wait_for()
        page.get_by_text("No live connection").wait_for()
        clusters.append(self.do(second.new_cluster("c1", 1)))
        self.serve(self.daemons[1])
        page.get_by_text("Live", exact=True).wait_for()
        page.locator(".facts", has_text="Active").wait_for()  # the second one has taken it over
        page.get_by_role("link", name="Home").click()
        page.get_by_role("row", name="c1").filter(has_text="Active").wait_for()

        self.do(self.daemons[1].kill())
        page.get_by_text("Reconnecting").wait_for()
        self.do(self.daemons[0].start())
        self.serve(self.daemons[0])
        again = Tenant(self.daemons[0].endpoints, first.cloud)
        clusters.append(self.do(again.new_cluster("c2", 1)))
        page.get_by_role("row", name="c2").filter(has_text="Active").wait_for()
        page.get_by_text("Live", exact=True).wait_for()
        routes = {url.removeprefix(self.base).partition("?since=")[0] for url in asked}
        self.assertEqual(
            # beside the quota of Home, and the story of the cluster that was shown
            {url for url in routes if not url.endswith((".svg", "/cloud", "/story?change=0"))},
            {f"/v1.1/{again.tenant}/watch"},
        )
        self.check(page, again, clusters)

    def check(self, page: Any, tenant: Tenant, clusters: list[str]) -> None:
        """What the page was told is what the API has: each version and each event once."""
        ended = self.do(tenant.new_hdfs_source("last", "hdfs:///last"))
        page.wait_for_function("(id) => told.some(([, data]) => data.id === id)", arg=ended)
        told = page.evaluate("told")
        self.assertEqual([event for event, _ in told if event in ("hello", "reset")], ["hello"])
        versions = [(e, d["id"], d["version"], d["change"]) for e, d in told if "version" in d]
        self.assertEqual(len(versions), len(set(versions)))
        newest = {data["id"]: data for event, data in told if event == "cluster"}
        for id_ in clusters:
            shown = self.do(tenant.cluster(id_))
            self.assertEqual({key: newest[id_][key] for key in shown}, shown)
            events = self.do(tenant.done("GET", f"/clusters/{id_}/events"))["events"]
            numbers = [
                d["number"] for e, d in told if e == "cluster_event" and d["cluster_id"] == id_
            ]
            self.assertEqual(numbers, list(range(1, len(events) + 1)))
            page.goto(f"/console/#/clusters/{id_}")
            page.locator("#events .number", has_text=str(len(events))).wait_for()
