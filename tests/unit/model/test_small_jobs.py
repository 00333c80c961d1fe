"""Options of a job that keep its tasks on machines of their own."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.small_jobs import ENABLED, keeps_tasks_apart

APART = [
    "mapreduce.map.java.opts", "mapreduce.reduce.memory.mb", "mapreduce.map.env",
    "mapreduce.map.env.RATES", "mapreduce.map.maxattempts", "mapreduce.map.resource.memory-mb",
    "mapreduce.reduce.resource.yarn.io/gpu", "mapreduce.admin.map.child.java.opts",
    "mapreduce.admin.user.env", "mapred.child.java.opts", "mapred.reduce.child.java.opts",
    "mapred.child.env", "mapred.job.map.memory.mb", "mapred.map.max.attempts",
    "mapreduce.task.io.sort.mb", "io.sort.mb", "yarn.app.mapreduce.am.command-opts",
    "yarn.app.mapreduce.am.resource.memory-mb",
]  # fmt: skip
"""The names of both generations: heap, memory, environment, attempts."""
TOGETHER = [
    ENABLED, "mapreduce.job.maps", "mapreduce.job.reduces", "mapreduce.job.map.class",
    "mapred.mapper.new-api", "mapreduce.map.output.compress", "yarn.app.mapreduce.am.log.level",
    "yarn.app.mapreduce.am.staging-dir", "yarn.app.mapreduce.am.resource.cpu-vcores",
]  # fmt: skip
"""Classes, data, numbers of tasks, and the words for and against it."""


class SmallJobTests(SynchronousTestCase):
    def test_options_of_a_tasks_own_machine_keep_it_apart(self) -> None:
        for name in APART:
            self.assertTrue(keeps_tasks_apart(["mapred.input.dir", name]), name)

    def test_other_options_do_not(self) -> None:
        self.assertFalse(keeps_tasks_apart([]))
        for name in TOGETHER:
            self.assertFalse(keeps_tasks_apart([name]), name)
