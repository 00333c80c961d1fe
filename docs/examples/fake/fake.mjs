// Node: `node --test fake.mjs`. svcd ends with the test, also when the test is killed.
import assert from "node:assert";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, test } from "node:test";

const svcd = spawn("svcd", ["fake", "--json", "--speed", "manual"], { stdio: ["ignore", "pipe", "inherit"] });
after(() => svcd.kill());
const [line] = await once(svcd.stdout, "data");
const fake = JSON.parse(line);

async function send(method, path, body) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(fake.url + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  assert(response.ok, `${method} ${path}: ${text}`);
  return text && JSON.parse(text);
}

test("a cluster becomes Active", async () => {
  const group = (name, count, ...node_processes) => ({ name, count, flavor_id: fake.flavor_id, node_processes });
  const { cluster } = await send("POST", `/v1.1/${fake.tenant}/clusters`, {
    name: "first",
    plugin_name: "fake",
    engine_version: "0.1",
    default_image_id: fake.image_id,
    user_keypair_id: fake.keypair,
    node_groups: [group("master", 1, "namenode"), group("worker", 2, "datanode")],
  });
  const path = `/v1.1/${fake.tenant}/clusters/${cluster.id}`;
  await send("POST", "/_fake/until", { path, field: "cluster.status", values: ["Active"] });
});
