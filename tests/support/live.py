"""Driving a live daemon over its sockets: clusters, and what the cloud itself says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.processes import Reply, reactor, send, until

MASTER = ["namenode", "resourcemanager", "historyserver", "oozie"]
WORKER = ["datanode", "nodemanager"]
ACTIVE_S = 90.0


class Tenant:
    """One tenant of a daemon, with the cloud beside it.

    api, cloud: what their `endpoints.json` say (the same file with an embedded cloud).
    """

    def __init__(
        self,
        api: Mapping[str, Any],
        cloud: Mapping[str, Any] | None = None,
        tenant: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.cloud = cloud or api
        self.tenant = tenant or self.cloud["tenant"]
        self.api = str(api["api"])
        self._base = f"{self.api}/v1.1/{self.tenant}"
        self._headers = dict(headers or {})

    async def ask(self, method: str, path: str, json: object = None) -> Reply:
        return await send(method, self._base + path, json=json, headers=self._headers)

    async def done(self, method: str, path: str, json: object = None) -> Any:
        """The body of a success."""
        reply = await self.ask(method, path, json)
        if reply.status not in (200, 202, 204):
            raise AssertionError(f"{method} {path}: {reply.status} {reply.body.decode()}")
        return reply.json

    # ---- clusters ----

    def image(self, name: str) -> str:
        return next(str(i["id"]) for i in self.cloud["images"] if i["name"] == name)

    async def new_cluster(
        self,
        name: str,
        workers: int,
        plugin: str = "fake",
        version: str = "0.1",
        scripts: Sequence[str] = (),
    ) -> str:
        """The id of a new cluster: one master, and workers with a volume each.

        scripts: first-boot scripts of the workers.
        """
        image = self.image("plain" if plugin == "fake" else f"{plugin}-{version}")
        await self.done("POST", f"/images/{image}", {"username": "svcd"})
        if plugin != "fake":
            await self.done("POST", f"/images/{image}/tag", {"tags": [plugin, version]})
        group = {"flavor_id": "3", "volumes_per_node": 1}
        body: Any = {
            "name": name,
            "plugin_name": plugin,
            "engine_version": version,
            "default_image_id": image,
            "user_keypair_id": "demo",
            "cluster_configs": {"HDFS": {"dfs.replication": 1}},
            "node_groups": [
                {"name": "master", "count": 1, "node_processes": MASTER, **group},
                {"name": "worker", "count": workers, "node_processes": WORKER, **group},
            ],
        }
        if scripts:
            body["node_groups"][1]["init_scripts"] = list(scripts)
        made = await self.done("POST", "/clusters", body)
        return str(made["cluster"]["id"])

    async def scale(self, cluster_id: str, workers: int) -> None:
        """Ask for another number of workers."""
        resized = [{"name": "worker", "count": workers}]
        await self.done("PUT", f"/clusters/{cluster_id}", {"resize_node_groups": resized})

    async def cluster(self, cluster_id: str) -> Any:
        return (await self.done("GET", f"/clusters/{cluster_id}"))["cluster"]

    async def until_active(self, cluster_id: str, limit_s: float = ACTIVE_S) -> Any:
        """The cluster when it is Active; at once an error when it is in Error."""
        last: dict[str, Any] = {}

        async def active() -> Any:
            last.update(await self.cluster(cluster_id))
            if last["status"] == "Error":
                raise AssertionError(f"in Error: {last['status_description']}")
            return last if last["status"] == "Active" else None

        try:
            return await until(active, f"cluster {cluster_id} Active", limit_s)
        except AssertionError as error:
            story = await self.done("GET", f"/clusters/{cluster_id}/events")
            told = "\n".join(str(e) for e in story["events"][-15:])
            raise AssertionError(f"{error}; status {last.get('status')}\n{told}") from None

    async def until_gone(self, cluster_id: str, limit_s: float = ACTIVE_S) -> None:
        """Until the cluster is not found any more."""

        async def gone() -> bool:
            return (await self.ask("GET", f"/clusters/{cluster_id}")).status == 404

        await until(gone, f"cluster {cluster_id} gone", limit_s)

    # ---- jobs ----

    async def upload(self, container: str, name: str, data: bytes) -> None:
        """Put an object into the object store."""
        headers = {"X-Auth-Token": await self.token()}
        for path, body in ((container, b""), (f"{container}/{name}", data)):
            url = f"{self.cloud['object_store']}/{path}"
            reply = await send("PUT", url, data=body, headers=headers)
            if reply.status != 201:
                raise AssertionError(f"PUT {url}: {reply.status} {reply.body.decode()}")

    async def download(self, container: str, name: str) -> bytes:
        """The content of an object."""
        headers = {"X-Auth-Token": await self.token()}
        reply = await send(
            "GET", f"{self.cloud['object_store']}/{container}/{name}", headers=headers
        )
        if reply.status != 200:
            raise AssertionError(f"GET {container}/{name}: {reply.status} {reply.body.decode()}")
        return reply.body

    async def objects(self, container: str, prefix: str) -> list[str]:
        """The names of the objects that begin so."""
        url = f"{self.cloud['object_store']}/{container}?format=json&prefix={prefix}"
        reply = await send("GET", url, headers={"X-Auth-Token": await self.token()})
        if reply.status != 200:
            raise AssertionError(f"GET {url}: {reply.status} {reply.body.decode()}")
        return [str(entry["name"]) for entry in reply.json]

    async def parts(self, container: str, folder: str) -> str:
        """The text of the files that a job has written into a folder."""
        names = await self.objects(container, f"{folder}/part")
        return "".join([(await self.download(container, name)).decode() for name in names])

    async def new_jar_job(self, name: str, jar: bytes) -> str:
        """A Jar job whose library is kept inside the service."""
        binary_id = await self._binary(f"{name}.jar", jar)
        return await self._job({"name": name, "type": "Jar", "mains": [], "libs": [binary_id]})

    async def new_pig_job(self, name: str, script: bytes) -> str:
        """A Pig job whose script is kept inside the service."""
        return await self.new_job(name, "Pig", {f"{name}.pig": script})

    async def log(self, execution_id: str) -> str:
        """The log of an execution."""
        url = f"{self._base}/job-executions/{execution_id}/log"
        return (await send("GET", url, headers=self._headers)).body.decode()

    async def new_job(
        self,
        name: str,
        kind: str,
        mains: Mapping[str, bytes] | None = None,
        libs: Mapping[str, bytes] | None = None,
    ) -> str:
        """A job of another type, of binaries by their names, kept inside the service."""
        ids = [
            [await self._binary(each, data) for each, data in (group or {}).items()]
            for group in (mains, libs)
        ]
        return await self._job({"name": name, "type": kind, "mains": ids[0], "libs": ids[1]})

    async def _job(self, body: object) -> str:
        return str((await self.done("POST", "/jobs", body))["job"]["id"])

    async def store(self, name: str, data: bytes) -> str:
        """The id of a new job binary internal."""
        stored = await send(
            "PUT", f"{self._base}/job-binary-internals/{name}", data=data, headers=self._headers
        )
        return str(stored.json["job_binary_internal"]["id"])

    async def _binary(self, name: str, data: bytes) -> str:
        url = f"internaldb://{await self.store(name, data)}"
        made = await self.done("POST", "/job-binaries", {"name": name, "url": url})
        return str(made["job_binary"]["id"])

    async def new_source(self, name: str, container: str, path: str) -> str:
        """A data source in the object store."""
        body = {
            "name": name,
            "type": "objstore",
            "url": f"objstore://{container}/{path}",
            "credentials": {"user": self.cloud["username"], "password": self.cloud["password"]},
        }
        return str((await self.done("POST", "/data-sources", body))["data_source"]["id"])

    async def new_hdfs_source(self, name: str, path: str) -> str:
        """A data source in the cluster's own file system."""
        body = {"name": name, "type": "hdfs", "url": path}
        return str((await self.done("POST", "/data-sources", body))["data_source"]["id"])

    async def execute(
        self,
        cluster_id: str,
        job_id: str,
        source: str,
        target: str,
        configs: Mapping[str, str],
        args: Sequence[str] = (),
        params: Mapping[str, str] | None = None,
    ) -> str:
        """The id of a new execution."""
        body = {
            "cluster_id": cluster_id,
            "input_id": source,
            "output_id": target,
            "job_configs": {
                "configs": dict(configs),
                "args": list(args),
                "params": dict(params or {}),
            },
        }
        made = await self.done("POST", f"/jobs/{job_id}/execute", body)
        return str(made["job_execution"]["id"])

    async def until_execution(self, execution_id: str, status: str, limit_s: float) -> Any:
        """The execution when it has the status; at once an error when it has ended otherwise."""

        last: dict[str, Any] = {}

        async def reached() -> Any:
            shown = await self.done("GET", f"/job-executions/{execution_id}")
            last.update(shown["info"])
            if shown["info"]["status"] == status:
                return shown
            if shown["end_time"]:
                raise AssertionError(f"not {status} but {shown['info']}")
            return None

        try:
            return await until(reached, f"execution {status}", limit_s)
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {last}") from None

    # ---- the cloud's own word ----

    async def token(self, username: str = "", password: str = "", project: str = "") -> str:
        """Of the identity service."""
        user = {
            "name": username or self.cloud["username"],
            "password": password or self.cloud["password"],
            "domain": {"id": "default"},
        }
        scope = {"project": {"name": project or self.tenant, "domain": {"id": "default"}}}
        identity = {"methods": ["password"], "password": {"user": user}}
        body = {"auth": {"identity": identity, "scope": scope}}
        reply = await send("POST", f"{self.cloud['identity']}/auth/tokens", json=body)
        if reply.status != 201:
            raise AssertionError(f"no token: {reply.status} {reply.body.decode()}")
        return reply.headers["x-subject-token"]

    async def servers(self) -> list[Any]:
        """What the compute service shows."""
        headers = {"X-Auth-Token": await self.token()}
        reply = await send("GET", f"{self.cloud['compute']}/servers/detail", headers=headers)
        found: list[Any] = reply.json["servers"]
        return found

    async def act(self, server_id: str, action: Mapping[str, Any]) -> None:
        """Ask the compute service for an action, such as `os-stop`."""
        headers = {"X-Auth-Token": await self.token()}
        url = f"{self.cloud['compute']}/servers/{server_id}/action"
        reply = await send("POST", url, json=action, headers=headers)
        if reply.status != 202:
            raise AssertionError(f"POST {url}: {reply.status} {reply.body.decode()}")

    async def volumes(self) -> list[Any]:
        """What the volume service shows."""
        headers = {"X-Auth-Token": await self.token()}
        reply = await send("GET", f"{self.cloud['volume']}/volumes/detail", headers=headers)
        found: list[Any] = reply.json["volumes"]
        return found


def machine_folders(state: Path) -> list[str]:
    """Folders of loopback machines that are still there."""
    folder = state / "cloud" / "machines"
    return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


def seconds() -> float:
    """The reactor's time."""
    return float(reactor.seconds())
