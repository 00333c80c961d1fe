"""The settings of Spark for literal machines."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import Cluster
from svcd.provisioning.distributions.kit import cluster, group, machines
from svcd.provisioning.distributions.spi import image_fault
from svcd.provisioning.distributions.vanilla import Vanilla
from svcd.provisioning.distributions.vanilla.configuration import files
from svcd.provisioning.distributions.vanilla.layout import spark_sizes
from svcd.provisioning.distributions.vanilla.spark import (
    connect_settings,
    properties,
    spark_defaults,
)

MASTER = group("master", 1, "namenode", "resourcemanager", "historyserver", "oozie")
WORKER = group("worker", 2, "datanode", "nodemanager")
HISTORY = group("spark", 1, "sparkhistory")
CONNECT = group("connect", 1, "sparkconnect")


def made(*more: object, **configs: Mapping[str, str | int | bool]) -> Cluster:
    return cluster(Vanilla(), MASTER, WORKER, *more, cluster_configs=configs)  # type: ignore[arg-type]


class TestDefaults(SynchronousTestCase):
    def test_every_machine_has_the_same_settings(self) -> None:
        """A job is submitted from any of them, and its settings travel to the others."""
        for root in ("", "/srv/cloud"):
            of = made(HISTORY)
            all_ = machines(of, root=root)
            found = [
                {f.path.rpartition("/svcd/conf/")[2]: f.content for f in files(of, all_, m)}
                for m in all_
            ]
            for name in ("spark-defaults.conf", "log4j2.properties"):
                self.assertEqual(len({each[name] for each in found}), 1)
                self.assertNotIn(b"/home", found[0][name])
                self.assertNotIn(b"/srv", found[0][name])

    def test_shared_hosts_name_an_address_and_wait_for_no_executors(self) -> None:
        """Servers keep the choices of Spark: it finds the address, and data is near."""
        expected = {
            "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "$NM_HOST",
            "spark.yarn.appMasterEnv.SPARK_LOCAL_HOSTNAME": "$NM_HOST",
            "spark.executorEnv.SPARK_LOCAL_IP": "$NM_HOST",
            "spark.executorEnv.SPARK_LOCAL_HOSTNAME": "$NM_HOST",
            "spark.ui.filters": "org.svcd.spark.HostFilter",
            "spark.scheduler.minRegisteredResourcesRatio": "0",
        }
        shared, servers = machines(made(), root="/srv/cloud"), machines(made())
        found = spark_defaults(shared, shared[0])
        self.assertEqual({name: found[name] for name in expected}, expected)
        self.assertEqual(set(expected) & set(spark_defaults(servers, servers[0])), set())

    def test_events_are_recorded_for_a_history_server(self) -> None:
        """Without one nobody would read or delete them."""
        all_ = machines(made(HISTORY))
        found = spark_defaults(all_, all_[0])
        self.assertEqual(found["spark.eventLog.enabled"], "true")
        self.assertEqual(found["spark.eventLog.dir"], "hdfs://10.0.0.2:8020/spark-history")
        self.assertEqual(found["spark.history.fs.logDirectory"], found["spark.eventLog.dir"])
        self.assertEqual(found["spark.yarn.historyServer.address"], "http://203.0.113.5:18080")
        for of in (made(), made(Spark={"spark.eventLog.enabled": True})):
            all_ = machines(of)
            found = spark_defaults(all_, all_[0])
            self.assertEqual(found["spark.eventLog.enabled"], "false")
            self.assertNotIn("spark.eventLog.dir", found)

    def test_options_of_the_caller_win(self) -> None:
        """0 and the empty text leave the choice to svcd."""
        of = made(
            Spark={
                "spark.executor.memory": "3g",
                "spark.executor.cores": 0,
                "spark.driver.memory": "",
                "spark.speculation": True,
            }
        )
        all_ = machines(of)
        found = spark_defaults(all_, all_[0])
        self.assertEqual(found["spark.executor.memory"], "3g")
        self.assertEqual(found["spark.executor.cores"], "1")
        self.assertEqual(found["spark.driver.memory"], "512m")
        self.assertEqual(found["spark.speculation"], "true")

    def test_number_of_executors_turns_dynamic_allocation_off(self) -> None:
        """Unless the caller asks for it too."""
        name = "spark.dynamicAllocation.enabled"
        for options, expected in (
            ({}, "true"),
            ({"spark.executor.instances": 3}, "false"),
            ({"spark.executor.instances": 3, name: True}, "true"),
        ):
            all_ = machines(made(Spark=options))
            self.assertEqual(spark_defaults(all_, all_[0])[name], expected)

    def test_values_are_escaped(self) -> None:
        """As Java reads properties."""
        self.assertEqual(
            properties({"a": "b", "c": " \\d\n\te"}), "# Made by svcd.\na=b\nc=\\ \\\\d\\n\\te\n"
        )


class TestImage(SynchronousTestCase):
    def faults(self, of: Cluster, software: tuple[str, ...]) -> list[str]:
        """The fault of each machine, in the order of the groups."""
        return [image_fault(Vanilla(), of, evolve(m, software=software)) for m in machines(of)]

    def test_processes_of_spark_need_an_image_with_spark(self) -> None:
        """So do node managers, which run executors; the text names the command."""
        told = (
            "sparkhistory needs Spark, and the software in /opt/svcd/vanilla comes without it: "
            "make an image with svcd image build vanilla /opt/svcd/vanilla, and create the cluster "
            "again with that image"
        )
        self.assertEqual(self.faults(made(HISTORY), ("bin", "hadoop")), ["", told, told, told])
        self.assertEqual(self.faults(made(HISTORY), ("hadoop", "spark")), [""] * 4)
        self.assertEqual(self.faults(made(), ("bin", "hadoop")), [""] * 3)
        self.assertEqual(self.faults(made(), ()), [""] * 3)


class TestSizes(SynchronousTestCase):
    def test_servers_give_shares_of_their_memory(self) -> None:
        """Two workers that share a host, of 4 GiB, of 64 GiB; a cluster without node managers."""
        servers = machines(made())
        large = [evolve(m, ram_mib=65536, vcpus=16) for m in servers]
        for all_, driver, executor, cores, most in (
            (machines(made(), root="/srv/cloud"), (704, 512), (704, 512), 2, 1),
            (servers, (704, 512), (704, 512), 1, 6),
            (large, (4096, 3584), (8192, 7168), 2, 10),
            (machines(cluster(Vanilla(), MASTER)), (704, 512), (704, 512), 2, 1),
        ):
            sizes = spark_sizes(all_)
            self.assertEqual((sizes.driver, sizes.driver_heap), driver)
            self.assertEqual((sizes.executor, sizes.executor_heap), executor)
            self.assertEqual((sizes.cores, sizes.most), (cores, most))


class TestConnect(SynchronousTestCase):
    def settings(
        self, *more: object, root: str = "", **configs: str | int | bool
    ) -> Mapping[str, str]:
        of = made(*more, CONNECT, Spark=configs)
        all_ = machines(of, root=root)
        return connect_settings(of, all_, all_[-1])

    def test_a_server_without_work_has_no_container(self) -> None:
        """It is its own application master, and returns idle executors, also after a shuffle."""
        for root in ("", "/srv/cloud"):
            found = self.settings(root=root)
            self.assertEqual(found["spark.yarn.unmanagedAM.enabled"], "true")
            self.assertNotIn("spark.executor.instances", found)
            prefix = "spark.dynamicAllocation."
            allocation = {k.removeprefix(prefix): v for k, v in found.items() if prefix in k}
            self.assertEqual(
                allocation,
                {
                    "enabled": "true",
                    "shuffleTracking.enabled": "true",
                    "minExecutors": "0",
                    "initialExecutors": "0",
                    "maxExecutors": "1" if root else "6",
                    "executorIdleTimeout": "60s",
                    "shuffleTracking.timeout": "60s",
                    "cachedExecutorIdleTimeout": "1800s",
                },
            )

    def test_it_listens_on_the_own_address_and_ends_with_its_application(self) -> None:
        """A result that does not fit is refused before it fills the heap."""
        found = self.settings()
        for name in (
            "spark.driver.host",
            "spark.driver.bindAddress",
            "spark.connect.grpc.binding.address",
        ):
            self.assertEqual(found[name], "10.0.0.5")
        self.assertEqual(found["spark.connect.grpc.binding.port"], "15002")
        self.assertEqual(found["spark.yarn.am.clientModeExitOnError"], "true")
        self.assertEqual(found["spark.driver.maxResultSize"], "256m")

    def test_its_token_stays_out_of_the_executors_and_its_events_out_of_hdfs(self) -> None:
        """Spark hands executors its variables; an application that never ends would fill HDFS."""
        name = "spark.executorEnv.SPARK_CONNECT_AUTHENTICATE_TOKEN"
        found = self.settings(HISTORY, **{name: "***"})
        self.assertEqual((found[name], found["spark.eventLog.enabled"]), ("none", "false"))

    def test_python_functions_need_no_package(self) -> None:
        """Those that do find them in a folder of the image."""
        found = self.settings()
        self.assertEqual(found["spark.sql.execution.pythonUDF.arrow.enabled"], "false")
        self.assertEqual(
            found["spark.executorEnv.PYTHONPATH"],
            "/opt/svcd/vanilla/spark/python/packages:/opt/svcd/vanilla/spark/python/svcd",
        )
        self.assertEqual(found["spark.python.daemon.module"], "svcd_daemon")
        self.assertEqual(found["spark.executorEnv.PYTHONDONTWRITEBYTECODE"], "1")

    def test_only_its_machine_has_the_files(self) -> None:
        """The token is in a file of its own, which has stars until svcd writes it.

        Spark packs all files of the configuration into an archive for HDFS and node managers.
        """
        of = made(CONNECT)
        all_ = machines(of)
        for machine in all_:
            found = {f.path.rpartition("/")[2]: f for f in files(of, all_, machine)}
            own = {"spark-connect.conf", "spark-connect.token", "log4j2-daemons.properties"}
            self.assertEqual(bool(own & set(found)), machine is all_[-1])
        token = found["spark-connect.token"]
        self.assertEqual((token.content, token.mode, token.token), (b"***\n", 0o600, True))
        self.assertEqual([f.path for f in found.values() if f.token], [token.path])
        self.assertNotIn("/conf/", token.path)
        self.assertNotIn(b"***", found["spark-connect.conf"].content)
