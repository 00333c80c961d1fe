"""The chapters of the suite. Each row has the sentence of the interface that it asserts: `says`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.conformance.clusters import CLUSTERS
from tests.conformance.data import DATA_SOURCES, JOB_BINARIES, JOB_BINARY_INTERNALS
from tests.conformance.frame import FRAME
from tests.conformance.jobs import JOB_EXECUTIONS, JOBS
from tests.conformance.plugins import IMAGES, PLUGINS
from tests.conformance.rows import Row
from tests.conformance.templates import CLUSTER_TEMPLATES, NODE_GROUP_TEMPLATES, PAGING

CHAPTERS: Mapping[str, Sequence[Row]] = {
    "frame": FRAME,
    "plugins": PLUGINS,
    "images": IMAGES,
    "node_group_templates": NODE_GROUP_TEMPLATES,
    "cluster_templates": CLUSTER_TEMPLATES,
    "paging": PAGING,
    "clusters": CLUSTERS,
    "data_sources": DATA_SOURCES,
    "job_binary_internals": JOB_BINARY_INTERNALS,
    "job_binaries": JOB_BINARIES,
    "jobs": JOBS,
    "job_executions": JOB_EXECUTIONS,
}
