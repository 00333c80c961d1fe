"""Files of literal machines, read back as Hadoop would read them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model import small_jobs
from svcd.model.cluster import Cluster
from svcd.provisioning.distributions.kit import cluster, group, machines
from svcd.provisioning.distributions.spi import Machine
from svcd.provisioning.distributions.vanilla import Vanilla
from svcd.provisioning.distributions.vanilla.configuration import files
from svcd.provisioning.distributions.vanilla.entries import JVM_OPTIONS
from svcd.provisioning.distributions.vanilla.hadoop import launcher_limits, launcher_percent
from svcd.provisioning.distributions.vanilla.layout import (
    SHARED_SIZES,
    containers_mib,
    heap_mib,
    spark_sizes,
    task_sizes,
)
from svcd.provisioning.distributions.vanilla.sites import site_xml

MASTER = group("master", 1, "namenode", "resourcemanager", "historyserver", "oozie")
WORKER = group("worker", 2, "datanode", "nodemanager")
SITES = "/home/user one/svcd/conf"


def made(**configs: Mapping[str, str | int | bool]) -> Cluster:
    return cluster(Vanilla(), MASTER, WORKER, cluster_configs=configs)


def text(of: Cluster, all_: tuple[Machine, ...], machine: Machine, name: str) -> str:
    found = {f.path.removeprefix(f"{machine.home}/svcd/"): f for f in files(of, all_, machine)}
    return found[name].content.decode()


def site(of: Cluster, all_: tuple[Machine, ...], machine: Machine, name: str) -> dict[str, str]:
    tree = ElementTree.fromstring(text(of, all_, machine, f"conf/{name}.xml"))
    return {p.findtext("name") or "": p.findtext("value") or "" for p in tree.findall("property")}


def room_for_an_executor(workers: tuple[Machine, ...]) -> list[bool]:
    """Whether one machine has room for an executor, for each number of launchers and masters.

    As the capacity scheduler counts: masters that run may be as many as were allowed at the time
    of their start, when each had a launcher.
    """
    spark, launcher = spark_sizes(workers), task_sizes(workers).launcher
    total = sum(map(containers_mib, workers))
    launchers = up(total * launcher_percent(workers) / 100) // launcher
    found = []
    for masters in range(1, launchers + 1):
        half = up(max(total * 0.7, total - masters * launcher) / 2)
        if masters == 1 or masters * spark.driver <= half:
            for n in range(masters, launchers + 1):
                free = total - n * launcher - masters * spark.driver
                found.append(free > len(workers) * (spark.executor - 64))
    return found


def up(mib: float) -> int:
    """A limit of the scheduler, which is rounded to its smallest container."""
    return -(-int(mib) // 64) * 64


class TestSites(SynchronousTestCase):
    def setUp(self) -> None:
        self.cluster = made()
        self.machines = machines(self.cluster)
        self.master, self.worker, _ = self.machines

    def test_daemons_listen_on_the_machines_own_address(self) -> None:
        """And find the others by addresses."""
        hdfs = site(self.cluster, self.machines, self.worker, "hdfs-site")
        self.assertEqual(hdfs["dfs.datanode.address"], "10.0.0.3:9866")
        self.assertEqual(hdfs["dfs.namenode.http-address"], "10.0.0.2:9870")
        yarn = site(self.cluster, self.machines, self.worker, "yarn-site")
        self.assertEqual(yarn["yarn.resourcemanager.hostname"], "10.0.0.2")
        self.assertEqual(yarn["yarn.nodemanager.address"], "10.0.0.3:8041")
        self.assertEqual(yarn["yarn.nodemanager.bind-host"], "10.0.0.3")

    def test_folders_are_below_the_storage(self) -> None:
        """One on each; as URLs where Hadoop reads URLs."""
        worker = evolve(self.worker, storage=("/volumes/disk1", "/volumes/disk2"))
        hdfs = site(self.cluster, self.machines, worker, "hdfs-site")
        self.assertEqual(
            hdfs["dfs.datanode.data.dir"],
            "file:///volumes/disk1/hdfs/datanode,file:///volumes/disk2/hdfs/datanode",
        )
        yarn = site(self.cluster, self.machines, worker, "yarn-site")
        self.assertEqual(
            yarn["yarn.nodemanager.local-dirs"],
            "/volumes/disk1/yarn/local,/volumes/disk2/yarn/local",
        )

    def test_replication_is_bound_by_the_data_nodes(self) -> None:
        """Two of them: two copies; the name node lets a node go with one elsewhere."""
        for machine, copies in ((self.worker, "2"), (self.master, "1")):
            found = site(self.cluster, self.machines, machine, "hdfs-site")
            self.assertEqual(found["dfs.replication"], copies)
        oozie = site(self.cluster, self.machines, self.master, "oozie/hadoop-conf/core-site")
        self.assertEqual(oozie["dfs.replication"], "2")

    def test_the_callers_options_win_and_reach_their_file(self) -> None:
        """On every machine, and in what travels with jobs."""
        asked = made(
            HDFS={"dfs.replication": 1, "io.file.buffer.size": 4096},
            MapReduce={"mapreduce.task.io.sort.mb": 7, "mapreduce.job.ubertask.enable": True},
        )
        all_ = machines(asked)
        for machine in all_:
            self.assertEqual(site(asked, all_, machine, "hdfs-site")["dfs.replication"], "1")
            self.assertEqual(site(asked, all_, machine, "core-site")["io.file.buffer.size"], "4096")
        jobs = site(asked, all_, all_[0], "oozie/hadoop-conf/core-site")
        self.assertEqual(jobs["mapreduce.task.io.sort.mb"], "7")
        self.assertEqual(jobs["mapreduce.job.ubertask.enable"], "true")

    def test_options_of_a_group_stay_in_the_group(self) -> None:
        name = "yarn.nodemanager.vmem-pmem-ratio"
        of = cluster(Vanilla(), MASTER, evolve(WORKER, node_configs={"YARN": {name: "4"}}))
        all_ = machines(of)
        self.assertEqual(site(of, all_, all_[1], "yarn-site")[name], "4")
        self.assertNotIn(name, site(of, all_, all_[0], "yarn-site"))

    def test_small_steps_of_pig_run_within_its_launcher(self) -> None:
        """As small as a small job of MapReduce, and with the same options against it.

        Pig copies no jar that each node has, for it finds a class of its own in the helpers' jar.
        """
        found = site(self.cluster, self.machines, self.master, "oozie/action-conf/default")
        self.assertEqual(found["pig.predeployed.jars"], "svcd-hadoop-helpers.jar")
        jobs = site(self.cluster, self.machines, self.master, "oozie/hadoop-conf/core-site")
        self.assertEqual(found["exectype"], "small")
        self.assertNotIn("pig.auto.local.enabled", found)
        most = found["pig.auto.local.input.maxbytes"]
        self.assertEqual(most, jobs["mapreduce.job.ubertask.maxbytes"])
        options = re.compile(found["svcd.pig.options.of.tasks"])
        self.assertTrue(options.fullmatch("mapreduce.map.java.opts"))
        self.assertFalse(options.fullmatch(small_jobs.ENABLED))

    def test_nothing_of_one_machine_travels_with_jobs(self) -> None:
        """Oozie's view of Hadoop names no folder of a machine."""
        shared = machines(self.cluster, root="/srv/cloud")
        for all_ in (self.machines, shared):
            jobs = site(self.cluster, all_, all_[0], "oozie/hadoop-conf/core-site")
            jobs |= site(self.cluster, all_, all_[0], "oozie/action-conf/default")
            for name, value in jobs.items():
                self.assertNotIn("/home", value, name)
                self.assertNotIn("/srv", value, name)

    def test_only_shared_hosts_get_an_address_to_bind_to(self) -> None:
        """And a hosts file for each virtual machine."""
        shared = machines(self.cluster, root="/srv/cloud")
        told = text(self.cluster, shared, shared[1], "env.sh")
        self.assertIn("-Dsvcd.address=127.4.0.3", told)
        self.assertIn("-Djdk.net.hosts.file=/srv/cloud/worker-1/home/svcd/conf/hosts", told)
        self.assertNotIn("SVCD_JVM_FLAGS", told)
        told = text(self.cluster, self.machines, self.worker, "env.sh")
        self.assertNotIn("svcd.address", told)
        self.assertNotIn("hosts.file", told)
        self.assertIn("export SVCD_JVM_FLAGS=''", told)
        self.assertIn("export HADOOP_USER_NAME=user", told)
        self.assertIn("export LANG=C.UTF-8", told)  # a login by SSH has none, and Java asks it

    def test_only_shared_hosts_check_the_host_header(self) -> None:
        """It comes before Hadoop's own filters; Oozie's is turned on by the address."""
        shared = machines(self.cluster, root="/srv/cloud")
        core = site(self.cluster, shared, shared[0], "core-site")
        self.assertEqual(
            core["hadoop.http.filter.initializers"],
            "org.svcd.hadoop.HostFilterInitializer,org.apache.hadoop.http.lib.StaticUserWebFilter",
        )
        hdfs = site(self.cluster, shared, shared[1], "hdfs-site")
        self.assertEqual(
            hdfs["dfs.datanode.httpserver.filter.handlers"],
            "org.svcd.hadoop.DataNodeHostHandler,"
            "org.apache.hadoop.hdfs.server.datanode.web.RestCsrfPreventionFilterHandler",
        )
        daemon = text(self.cluster, shared, shared[0], "bin/daemon")
        home = shared[0].home
        options = f"OOZIE_OPTS='-Duser.home={home} -Dsvcd.address=127.4.0.2'"
        self.assertIn(options, daemon)
        core = site(self.cluster, self.machines, self.master, "core-site")
        self.assertNotIn("hadoop.http.filter.initializers", core)
        hdfs = site(self.cluster, self.machines, self.worker, "hdfs-site")
        self.assertNotIn("dfs.datanode.httpserver.filter.handlers", hdfs)
        daemon = text(self.cluster, self.machines, self.master, "bin/daemon")
        self.assertNotIn("svcd.address", daemon)

    def test_node_managers_look_for_full_disks(self) -> None:
        """A shared disk may be 90 % full of other things, and jobs run."""
        shared = machines(self.cluster, root="/srv/cloud")
        checker = "yarn.nodemanager.disk-health-checker."
        for all_, expected in (
            (self.machines, {"interval-ms": "30000"}),
            (shared, {"interval-ms": "10000", "disk-utilization-threshold.enabled": "false",
                      "min-free-space-per-disk-mb": "32"}),
        ):  # fmt: skip
            told = site(self.cluster, all_, all_[1], "yarn-site")
            found = {n.removeprefix(checker): v for n, v in told.items() if checker in n}
            self.assertEqual(found, expected)

    def test_only_heads_have_lists_of_leaving_nodes(self) -> None:
        """Empty at first."""
        self.assertEqual(text(self.cluster, self.machines, self.master, "conf/exclude.hdfs"), "")
        paths = [f.path for f in files(self.cluster, self.machines, self.worker)]
        self.assertNotIn(f"{SITES}/exclude.hdfs", paths)
        self.assertNotIn(f"{SITES}/oozie/oozie-site.xml", paths)

    def test_launchers_have_a_queue_of_their_own(self) -> None:
        """Else waiting launchers could fill the cluster."""
        queues = site(self.cluster, self.machines, self.master, "capacity-scheduler")
        self.assertEqual(queues["yarn.scheduler.capacity.root.queues"], "default,launchers")
        self.assertEqual(queues["yarn.scheduler.capacity.root.launchers.maximum-capacity"], "30")
        oozie = site(self.cluster, self.machines, self.master, "oozie/oozie-site")
        self.assertEqual(oozie["oozie.launcher.default.queue"], "launchers")

    def test_launcher_fits_on_the_last_small_node_manager(self) -> None:
        """A percentage that allows no launcher would stop all jobs."""
        (_, small, _) = all_ = machines(made(), root="/srv/cloud")
        self.assertEqual(launcher_percent(all_), 30)
        self.assertEqual(launcher_percent((evolve(small, ram_mib=512),)), 38)
        self.assertEqual(launcher_percent(machines(cluster(Vanilla(), MASTER))), 30)

    def test_largest_launcher_fits_into_a_node_and_into_its_queue(self) -> None:
        """Measured on real YARN: two nodes of 2048 MiB take 1216 MiB as launchers, else 2048."""
        (_, one, two) = machines(made(), root="/srv/cloud")
        limits = launcher_limits((one, two))
        self.assertEqual(limits.most_mib, {"default": 2048, "launchers": 1216})
        self.assertEqual((limits.queue, limits.most_cores), ("launchers", 8))
        asked = {"YARN": {"yarn.nodemanager.resource.memory-mb": 8192}}
        limits = launcher_limits((one, evolve(two, configs=asked)))
        self.assertEqual(limits.most_mib, {"default": 2048, "launchers": 2048})
        asked["YARN"]["yarn.scheduler.maximum-allocation-mb"] = 4096
        limits = launcher_limits((evolve(one, configs=asked), evolve(two, configs=asked)))
        self.assertEqual(limits.most_mib, {"default": 4096, "launchers": 4096})
        self.assertEqual(launcher_limits(machines(cluster(Vanilla(), MASTER))).most_mib, {})

    def test_executor_finds_room_beside_all_launchers_and_masters(self) -> None:
        """However they are spread; else launchers and masters would wait for ever."""
        (_, worker, _) = machines(made())
        (_, folder, _) = machines(made(), root="/srv/cloud")
        sizes = [folder, *(evolve(worker, ram_mib=mib) for mib in (4096, 8192, 16384, 65536))]
        for machine in sizes:
            for count in (1, 2, 3, 4, 8, 20):
                rooms = room_for_an_executor((machine,) * count)
                self.assertTrue(all(rooms), (machine.ram_mib, count, rooms))

    def test_node_managers_keep_no_file_of_a_job(self) -> None:
        """It may hold secrets."""
        for machine, interval in (
            (self.worker, "300000"),
            (machines(self.cluster, root="/srv/cloud")[1], "60000"),
        ):
            yarn = site(self.cluster, self.machines, machine, "yarn-site")
            cache = "yarn.nodemanager.localizer.cache"
            self.assertEqual(yarn[f"{cache}.target-size-mb"], "0")
            self.assertEqual(yarn[f"{cache}.cleanup.interval-ms"], interval)
            debug = "yarn.nodemanager.log-container-debug-info.enabled"
            self.assertEqual(yarn[debug], "false")

    def test_containers_may_have_all_cores_and_carry_the_mark_of_their_machine(self) -> None:
        """The limit of YARN is 4 cores. Containers without the mark would outlive the machine."""
        large = tuple(evolve(m, vcpus=16) for m in self.machines)
        yarn = site(self.cluster, large, large[1], "yarn-site")
        self.assertEqual(yarn["yarn.scheduler.maximum-allocation-vcores"], "32")
        self.assertIn("SVCD_MACHINE_ROOT", yarn["yarn.nodemanager.env-whitelist"].split(","))

    def test_small_jobs_run_within_their_master(self) -> None:
        """On servers only those without parallel tasks. The same in all that travels with jobs."""
        uber = "mapreduce.job.ubertask"
        for all_, maps in (
            (self.machines, "1"), (machines(self.cluster, root="/srv/cloud"), "4")
        ):  # fmt: skip
            for name in ("mapred-site", "oozie/hadoop-conf/core-site"):
                jobs = site(self.cluster, all_, all_[0], name)
                self.assertEqual(jobs[f"{uber}.enable"], "true")
                self.assertEqual(jobs[f"{uber}.maxmaps"], maps)
                self.assertEqual(jobs[f"{uber}.maxbytes"], "16777216")

    def test_caller_turns_small_jobs_off_or_their_tasks_need_more(self) -> None:
        """Tasks with a heap of their own do not fit into the master; the caller's word wins."""
        name, heap = "mapreduce.job.ubertask.enable", {"mapreduce.map.java.opts": "-Xmx1g"}
        for asked, given in (
            ({name: False}, "false"), (heap, "false"), ({**heap, name: True}, "true")
        ):  # fmt: skip
            of = made(MapReduce=asked)
            all_ = machines(of)
            for file in ("mapred-site", "oozie/hadoop-conf/core-site"):
                self.assertEqual(site(of, all_, all_[0], file)[name], given)

    def test_values_are_escaped(self) -> None:
        """What a caller writes stays text; a reader that trims leaves a tab as a reference."""
        text = site_xml({"separator": "\t", "b": "a\nb"})
        self.assertIn("<value>&#9;</value>", text)
        values = [value.text for value in ElementTree.fromstring(text).iter("value")]
        self.assertEqual(values, ["\t", "a\nb"])
        self.assertEqual(
            site_xml({"a": "<&>"}),
            '<?xml version="1.0"?>\n<configuration>\n'
            "<property><name>a</name><value>&lt;&amp;&gt;</value></property>\n</configuration>\n",
        )

    def test_tab_and_line_feed_of_java_options_separate_them(self) -> None:
        """The shell that reads `env.sh` sees one line."""
        of = made(general={JVM_OPTIONS: "-Da=1\n\t-Db=2"})
        all_ = machines(of)
        (line,) = [
            each
            for each in text(of, all_, all_[0], "env.sh").splitlines()
            if each.startswith("export HADOOP_OPTS=")
        ]
        self.assertTrue(line.endswith(" -Da=1 -Db=2'"), line)


class TestSizes(SynchronousTestCase):
    def test_shared_hosts_get_the_smallest_heaps(self) -> None:
        """Whatever the flavor says."""
        all_ = machines(made(), root="/srv/cloud")
        self.assertEqual([heap_mib(all_[0], p) for p in MASTER.node_processes], [128, 192, 96, 256])
        self.assertEqual([heap_mib(all_[1], p) for p in WORKER.node_processes], [96, 128])
        self.assertEqual(containers_mib(all_[1]), 2048)
        self.assertEqual(containers_mib(evolve(all_[1], ram_mib=512)), 1024)

    def test_servers_give_shares_of_their_memory(self) -> None:
        """4 GiB and 64 GiB workers."""
        worker = machines(made())[1]
        self.assertEqual([heap_mib(worker, p) for p in WORKER.node_processes], [256, 256])
        self.assertEqual(containers_mib(worker), 2880)
        large = evolve(worker, ram_mib=65536)
        self.assertEqual([heap_mib(large, p) for p in WORKER.node_processes], [2048, 2048])
        self.assertEqual(containers_mib(large), 59200)

    def test_tasks_fit_several_times_on_the_smallest_node(self) -> None:
        """About eight."""
        all_ = machines(made())
        sizes = task_sizes(all_)
        self.assertEqual((sizes.task, sizes.task_heap, sizes.sort), (320, 213, 40))
        self.assertEqual((sizes.master, sizes.launcher), (448, 384))

    def test_master_has_room_for_a_task(self) -> None:
        """A small job runs in it. It is no larger than a driver of Spark, whose room is proven."""
        worker = machines(made())[1]
        for ram in (2048, *range(4096, 65537, 1024)):
            servers = (evolve(worker, ram_mib=ram),)
            sizes = task_sizes(servers)
            self.assertGreaterEqual(sizes.master_heap, sizes.task_heap + 80)
            self.assertGreaterEqual(sizes.master - sizes.master_heap, 96)
            self.assertLessEqual(sizes.master, spark_sizes(servers).driver)
        self.assertGreaterEqual(SHARED_SIZES.master_heap, SHARED_SIZES.task_heap + 80)

    def test_a_heap_that_was_asked_for_is_given(self) -> None:
        """0 means by the memory."""
        worker = machines(made())[1]
        for asked, given in ((777, 777), (0, 256)):
            configured = evolve(worker, configs={"HDFS": {"DataNode Heap Size": asked}})
            self.assertEqual(heap_mib(configured, "datanode"), given)
