"""What a page of the console keeps of the changes, with its modules alone in a real browser."""

from __future__ import annotations

from typing import Any

from tests.support.console import ConsoleCase

RENEWED = """async (here) => {
    const { share } = await import("/console/tabs.js");
    const { session } = await import("/console/session.js");
    Object.assign(session, { project: here, token: "t" });
    const text = new TextEncoder().encode(JSON.stringify([here, "token", "t"]));
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", text));
    const name = `svcd ${[...digest].map((n) => n.toString(16).padStart(2, "0")).join("")}`;
    await new Promise((held) => navigator.locks.request(name, () => new Promise(held)));
    const leader = new BroadcastChannel(name);
    const asked = new Promise((done) => (leader.onmessage = done));
    const taken = [];
    const heard = new Promise((done) => {
        const take = (event, data) => {
            taken.push([event, data.id ?? ""]);
            if (data.id === "last") done();
        };
        share(take, () => {}, () => {}, "c1");
    });
    await asked;
    leader.postMessage({ event: "cluster", data: { id: "first" }, id: "c5" });
    leader.postMessage({ here, live: "live", why: "" });
    leader.postMessage({ event: "cluster", data: { id: "last" }, id: "c6" });
    await heard;
    return taken;
}"""
"""A tab that knows the changes up to c1 and hears a leader; `here` is the cursor of that one."""

BUSY = """async () => {
    const { session } = await import("/console/session.js");
    const { open, openAll, store } = await import("/console/store.js");
    session.project = "p";
    const ids = [..."0123456789"];
    let write;
    let [now, most, asked] = [0, 0, 0];
    const lists = { job_executions: [], jobs: [], data_sources: [], binaries: [] };
    const code = new TextEncoder();
    const events = Array.from({ length: 1200 }, (_, n) => ({ text: `${n}` }));
    globalThis.fetch = async (url) => {
        if (url.includes("/watch")) return new Response(new ReadableStream({ start: (to) => {
            write = (name, data) => to.enqueue(code.encode(
                `id: 1\\nevent: ${name}\\ndata: ${JSON.stringify(data)}\\n\\n`));
            write("hello", {});
        } }));
        if (!url.endsWith("/events")) {
            return Response.json({ ...lists, clusters: ids.map((id) => ({ id })) });
        }
        asked += 1;
        most = Math.max(most, (now += 1));
        await new Promise((done) => setTimeout(done, 5));
        now -= 1;
        return Response.json({ events });
    };
    const until = async (test) => {
        while (!test()) await new Promise((done) => setTimeout(done, 5));
    };
    open();
    await until(() => store.loaded);
    await openAll(ids);
    write("reset", {});
    await until(() => asked === 20 && !now);
    write("cluster", { id: "3", change: "deleted" });
    await until(() => !store.cluster.has("3"));
    const kept = [...store.events.get("0").values()];
    return [most, store.events.size, kept.length, kept[0].text, kept.at(-1).text];
}"""


class StoreTests(ConsoleCase):
    async def test_changes_are_neither_missed_nor_kept_without_a_bound(self) -> None:
        """A renewed tab lists anew unless its leader is where it was itself."""

        def walk(page: Any) -> None:
            page.goto("/console/icon.svg")
            self.assertEqual(page.evaluate(RENEWED, "c5"), [["hello", ""], ["cluster", "last"]])
            self.assertEqual(page.evaluate(RENEWED, "c1"), [["cluster", "last"]])
            self.assertEqual(page.evaluate(BUSY), [3, 9, 1000, "200", "1199"])

        await self.walk(walk)
