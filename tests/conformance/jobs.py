"""Jobs and job executions."""

from __future__ import annotations

import re

from tests.conformance.bodies import (
    BINARIES_AT,
    BINARY_FIELDS,
    CLUSTERS_AT,
    COMMANDS,
    GONE,
    INLINE,
    INTERNALS_AT,
    JOB,
    JOBS_AT,
    JSON,
    MAKE_BINARY,
    MASTER,
    READY,
    SOURCE,
    SOURCES_AT,
    UPLOAD,
    V0,
    V1,
    refused,
    unknown,
)
from tests.conformance.rows import ABSENT, ID, STAMP, STAMP_T, Each, Either, Has, Holds, Only, Row

JOB_FIELDS = {
    "id": ID,
    "name": "j-{run}",
    "description": "words",
    "type": "Pig",
    "mains": [Only({**BINARY_FIELDS, "id": "{jb}", "updated_at": None})],
    "libs": [],
    "tenant_id": "{tenant}",
    "created_at": STAMP,
    "updated_at": None,
}

HINTS = (
    "mapred.input.dir",
    "mapred.output.dir",
    "mapred.mapoutput.key.class",
    "mapred.mapoutput.value.class",
    "mapred.output.key.class",
    "mapred.output.value.class",
    "mapreduce.map.class",
    "mapreduce.reduce.class",
    "mapred.mapper.class",
    "mapred.reducer.class",
)

NUMBER = re.compile(r"[0-9]+")
LOG = {
    "content-type": "text/plain; charset=utf-8",
    "x-log-start": NUMBER,
    "x-log-offset": NUMBER,
    "x-log-complete": Either(("true", "false")),
    "x-log-gap": Either(("true", "false")),
}

JOBS = (
    UPLOAD,
    MAKE_BINARY,
    Row(
        says="POST jobs: 202, binaries expanded to objects",
        method="POST",
        path=JOBS_AT,
        json=JOB,
        status=202,
        headers=JSON,
        body=Only({"job": Only(JOB_FIELDS)}),
        save={"job": ("job", "id")},
    ),
    Row(says="GET jobs/ID: 200", path=JOBS_AT + "/{job}", body=Only({"job": Only(JOB_FIELDS)})),
    Row(says="GET jobs: 200", path=JOBS_AT, body=Only({"jobs": Has(Only(JOB_FIELDS))})),
    Row(
        says="a job of type Jar may have empty mains",
        method="POST",
        path=JOBS_AT,
        json={"name": "jar-{run}", "type": "Jar", "mains": [], "libs": ["{jb}"]},
        status=202,
        body={"job": {"type": "Jar", "mains": [], "libs": [{"id": "{jb}"}]}},
        save={"jar": ("job", "id")},
    ),
    Row(
        says="GET jobs/config-hints/Jar: job_config with configs and args",
        path=JOBS_AT + "/config-hints/Jar",
        body=Only(
            {
                "job_config": Only(
                    {
                        "configs": Each(Only({"name": str, "value": str, "description": str})),
                        "args": {},
                    }
                )
            }
        ),
    ),
    *(
        Row(
            says=f"the hints of Jar hold {name}",
            path=JOBS_AT + "/config-hints/Jar",
            body={"job_config": {"configs": Has({"name": name, "value": ""})}},
        )
        for name in HINTS
    ),
    *(
        Row(
            says=f"the hints of Jar hold {name}, true",
            path=JOBS_AT + "/config-hints/Jar",
            body={"job_config": {"configs": Has({"name": name, "value": "true"})}},
        )
        for name in ("mapred.reducer.new-api", "mapred.mapper.new-api")
    ),
    Row(
        says="hints of Pig",
        path=JOBS_AT + "/config-hints/Pig",
        body={"job_config": {"configs": list}},
    ),
    unknown("hints of an unknown type", "GET", JOBS_AT + "/config-hints/zzz"),
    refused("a job name is unique", JOB, JOBS_AT, "JOB_NAME_ALREADY_EXISTS"),
    refused("type of a job is required", {"name": "a"}, JOBS_AT),
    refused("name of a job is required", {"type": "Pig"}, JOBS_AT),
    refused("a job of an unknown type", {**JOB, "type": "pig"}, JOBS_AT),
    refused("mains of a job as text", {**JOB, "mains": "x"}, JOBS_AT),
    refused(
        "Pig needs a main",
        {**JOB, "name": "p-{run}", "mains": []},
        JOBS_AT,
        "INVALID_DATA",
        needs=COMMANDS,
    ),
    refused(
        "a job of an unknown binary",
        {**JOB, "name": "b-{run}", "mains": ["nope"]},
        JOBS_AT,
        "INVALID_REFERENCE",
        needs=COMMANDS,
    ),
    Row(
        says="a binary used by a job cannot be deleted",
        method="DELETE",
        path=BINARIES_AT + "/{jb}",
        status=400,
        error="DELETION_FAILED",
    ),
    unknown("GET of an unknown job", "GET", JOBS_AT + "/nope"),
    unknown("DELETE of an unknown job", "DELETE", JOBS_AT + "/nope"),
    unknown("execute of an unknown job", "POST", JOBS_AT + "/nope/execute", json={}),
    Row(says="DELETE of a job: 204", method="DELETE", path=JOBS_AT + "/{jar}", status=204, raw=b""),
    Row(says="clean up", method="DELETE", path=JOBS_AT + "/{job}", status=204),
    Row(says="clean up", method="DELETE", path=BINARIES_AT + "/{jb}", status=204),
    Row(says="clean up", method="DELETE", path=INTERNALS_AT + "/{jbi}", status=204),
)

RUNS_AT = V1 + "/job-executions"

EXECUTE = {
    "cluster_id": "{c}",
    "input_id": "{in}",
    "output_id": "{out}",
    "job_configs": {"configs": {"a": "b"}, "args": {"x": "y"}, "params": {"p": "q"}},
}

RUN_FIELDS = {
    "id": ID,
    "job_id": "{job}",
    "cluster_id": "{c}",
    "input_id": "{in}",
    "output_id": "{out}",
    "job_configs": Only(
        {"configs": Only({"a": "b"}), "args": Only({"x": "y"}), "params": Only({"p": "q"})}
    ),
    "info": {"status": str},
    "tenant_id": "{tenant}",
    "created_at": STAMP,
    "updated_at": Either((None, STAMP)),
    "start_time": Either((None, STAMP_T)),
    "end_time": Either((None, STAMP_T)),
    "return_code": Either((None, int)),
    "workflow_job_id": Either((None, str)),
    "progress": Either((None, float, int)),
}

FAULT = Only({"code": str, "step": str, "text": str, "meaning": str, "advice": str})
WORK = Only(
    {
        "kind": str,
        "since": Either((None, STAMP_T)),
        "until": Either((None, STAMP_T)),
        "progress": Either((None, float, int)),
        "wait": Either((None, FAULT)),
        "cluster_status": Either((None, str)),
    }
)
STEP = Only(
    {
        "name": str,
        "type": str,
        "status": str,
        "began": Either((None, STAMP_T)),
        "ended": Either((None, STAMP_T)),
        "external_id": str,
        "external_status": str,
        "error_code": str,
        "error_text": str,
        "page": str,
    }
)

ENGINE_CLUSTER = {
    **INLINE,
    "node_groups": [
        {
            **MASTER,
            "node_processes": ["namenode", "resourcemanager", "historyserver", "oozie"],
        },
        {
            **MASTER,
            "name": "w",
            "node_processes": ["datanode", "nodemanager"],
        },
    ],
    "cluster_configs": {"HDFS": {"dfs.replication": 1}},
}

JOB_EXECUTIONS = (
    *READY,
    UPLOAD,
    MAKE_BINARY,
    Row(
        says="a job",
        method="POST",
        path=JOBS_AT,
        json=JOB,
        status=202,
        save={"job": ("job", "id")},
    ),
    Row(
        says="input",
        method="POST",
        path=SOURCES_AT,
        json=SOURCE,
        status=202,
        save={"in": ("data_source", "id")},
    ),
    Row(
        says="output",
        method="POST",
        path=SOURCES_AT,
        json={**SOURCE, "name": "out-{run}", "url": "objstore://box.svc/out"},
        status=202,
        save={"out": ("data_source", "id")},
    ),
    Row(
        says="a cluster",
        method="POST",
        path=CLUSTERS_AT,
        json=ENGINE_CLUSTER,
        status=202,
        save={"c": ("cluster", "id")},
    ),
    Row(
        says="POST execute: 202, Pending, no engine id, no start",
        method="POST",
        path=JOBS_AT + "/{job}/execute",
        json=EXECUTE,
        status=202,
        headers=JSON,
        body=Only(
            {
                "job_execution": Only(
                    {
                        **RUN_FIELDS,
                        "info": Only({"status": "Pending"}),
                        "workflow_job_id": None,
                        "start_time": None,
                        "end_time": None,
                    }
                )
            }
        ),
        save={"run_id": ("job_execution", "id")},
    ),
    Row(
        says="GET job-executions: wrapped list",
        path=RUNS_AT,
        body=Only({"job_executions": Has(Only({**RUN_FIELDS, "id": "{run_id}"}))}),
    ),
    Row(
        says="GET job-executions/ID: not wrapped, nulls stay",
        path=RUNS_AT + "/{run_id}",
        body=Only({**RUN_FIELDS, "id": "{run_id}"}),
    ),
    *(
        Row(
            says=f"HEAD {action} changes nothing",
            method="HEAD",
            path=RUNS_AT + "/{run_id}/" + action,
            status=405,
            headers={"allow": "GET, OPTIONS, POST"},
            raw=b"",
        )
        for action in ("refresh-status", "cancel")
    ),
    *(
        Row(
            says=f"OPTIONS {action} answers Allow",
            method="OPTIONS",
            path=RUNS_AT + "/{run_id}/" + action,
            headers={"allow": "GET, OPTIONS, POST"},
            raw=b"",
        )
        for action in ("refresh-status", "cancel")
    ),
    Row(
        says="HEAD cancel leaves the execution running",
        path=RUNS_AT + "/{run_id}",
        body={"info": {"status": re.compile("(?!KILLED|ToBeKilled)")}},
    ),
    Row(
        says="GET log with an offset: text, and where it goes on (additive, v1.1)",
        path=RUNS_AT + "/{run_id}/log?offset=0",
        headers={**LOG, "x-log-left-out": ABSENT},
    ),
    Row(
        says="GET log with programs=true: the programs' lines alone",
        path=RUNS_AT + "/{run_id}/log?offset=0&programs=true",
        headers={**LOG, "x-log-left-out": NUMBER},
    ),
    *(
        Row(
            says=f"GET log with a wrong query: {query}",
            path=RUNS_AT + "/{run_id}/log?" + query,
            status=400,
            error="VALIDATION_ERROR",
        )
        for query in ("programs=true", "offset=0&programs=2", "offset=0&program=true")
    ),
    Row(
        says="the story tells the present work, the failure and the steps (additive, v1.1)",
        path=RUNS_AT + "/{run_id}/story",
        body=Only(
            {
                "story": Only(
                    {
                        "status": str,
                        "outcome": str,
                        "work": Either((None, WORK)),
                        "failure": Either((None, FAULT)),
                        "steps": Each(STEP),
                    }
                )
            }
        ),
    ),
    unknown("the story is not under v1.0", "GET", V0 + "/job-executions/{run_id}/story"),
    unknown("the story of an unknown execution", "GET", RUNS_AT + "/nope/story"),
    Row(
        says="GET refresh-status: the object, not wrapped",
        path=RUNS_AT + "/{run_id}/refresh-status",
        body=Only({**RUN_FIELDS, "id": "{run_id}"}),
    ),
    Row(
        says="GET cancel: the object in KILLED",
        path=RUNS_AT + "/{run_id}/cancel",
        body=Only({**RUN_FIELDS, "id": "{run_id}", "info": {"status": "KILLED"}}),
    ),
    Row(
        says="the story of a cancelled execution",
        path=RUNS_AT + "/{run_id}/story",
        body={"story": {"outcome": "cancelled", "work": None, "failure": None}},
    ),
    *(
        Row(
            says=f"POST {action}: the same answer as GET (additive)",
            method="POST",
            path=RUNS_AT + "/{run_id}/" + action,
            body=Only({**RUN_FIELDS, "id": "{run_id}", "info": {"status": "KILLED"}}),
        )
        for action in ("refresh-status", "cancel")
    ),
    Row(
        says="PUT cancel is not a method",
        method="PUT",
        path=RUNS_AT + "/{run_id}/cancel",
        status=405,
        error="METHOD_NOT_ALLOWED",
        headers={"allow": "GET, OPTIONS, POST"},
    ),
    Row(
        says="job_configs may be left out: {} in the answer",
        method="POST",
        path=JOBS_AT + "/{job}/execute",
        json={k: v for k, v in EXECUTE.items() if k != "job_configs"},
        status=202,
        body={"job_execution": {"job_configs": Only({})}},
        save={"run_2": ("job_execution", "id")},
    ),
    Row(
        says="args may be an array of texts (answered as given)",
        method="POST",
        path=JOBS_AT + "/{job}/execute",
        json={**EXECUTE, "job_configs": {"args": ["a", "b"]}},
        status=202,
        body={"job_execution": {"job_configs": {"args": ["a", "b"]}}},
        save={"run_3": ("job_execution", "id")},
    ),
    *(
        Row(
            says=f"a wrong execute: {json}",
            method="POST",
            path=JOBS_AT + "/{job}/execute",
            json=json,
            status=400,
            error="VALIDATION_ERROR",
        )
        for json in (
            {},
            {**EXECUTE, "cluster_id": None},
            {**EXECUTE, "x": 1},
            {**EXECUTE, "job_configs": []},
            {**EXECUTE, "job_configs": {"x": {}}},
            {**EXECUTE, "job_configs": {"configs": []}},
            {**EXECUTE, "job_configs": {"args": "x"}},
            {**EXECUTE, "job_configs": {"args": [1]}},
        )
    ),
    *(
        Row(
            says=f"execute with an unknown {name}",
            method="POST",
            path=JOBS_AT + "/{job}/execute",
            json={**EXECUTE, name: "nope"},
            status=400,
            error="INVALID_REFERENCE",
            needs=COMMANDS,
        )
        for name in ("cluster_id", "input_id", "output_id")
    ),
    Row(
        says="faults of an inline cluster are told with their whole path",
        method="POST",
        path=JOBS_AT + "/{job}/execute",
        json={
            **{k: v for k, v in EXECUTE.items() if k != "cluster_id"},
            "cluster": {**ENGINE_CLUSTER, "name": "in-{run}", "default_image_id": "nope"},
        },
        status=400,
        error="INVALID_REFERENCE",
        message=Holds(("$.cluster.default_image_id: image 'nope' not found; registered images:",)),
        needs=COMMANDS,
    ),
    Row(
        says="execute of a Pig job without input",
        method="POST",
        path=JOBS_AT + "/{job}/execute",
        json={k: v for k, v in EXECUTE.items() if k != "input_id"},
        status=400,
        error="INVALID_DATA",
        needs=COMMANDS,
    ),
    *(
        unknown(f"{method} of an unknown execution", method, RUNS_AT + path)
        for method, path in (
            ("GET", "/nope"),
            ("GET", "/nope/refresh-status"),
            ("GET", "/nope/cancel"),
            ("POST", "/nope/refresh-status"),
            ("POST", "/nope/cancel"),
            ("DELETE", "/nope"),
        )
    ),
    Row(
        says="a data source that an execution uses cannot be deleted",
        method="DELETE",
        path=SOURCES_AT + "/{in}",
        status=400,
        error="DELETION_FAILED",
    ),
    Row(
        says="a job with executions cannot be deleted",
        method="DELETE",
        path=JOBS_AT + "/{job}",
        status=400,
        error="DELETION_FAILED",
    ),
    *(
        Row(
            says="DELETE of an execution: 204",
            method="DELETE",
            path=RUNS_AT + "/{" + name + "}",
            status=204,
        )
        for name in ("run_id", "run_2", "run_3")
    ),
    *(
        Row(
            says="a deleted execution goes away",
            path=RUNS_AT + "/{" + name + "}",
            status=404,
            error="NOT_FOUND",
            until=True,
        )
        for name in ("run_id", "run_2", "run_3")
    ),
    Row(says="clean up", method="DELETE", path=CLUSTERS_AT + "/{c}", status=204),
    GONE,
    Row(says="clean up", method="DELETE", path=JOBS_AT + "/{job}", status=204),
    Row(says="clean up", method="DELETE", path=SOURCES_AT + "/{in}", status=204),
    Row(says="clean up", method="DELETE", path=SOURCES_AT + "/{out}", status=204),
    Row(says="clean up", method="DELETE", path=BINARIES_AT + "/{jb}", status=204),
    Row(says="clean up", method="DELETE", path=INTERNALS_AT + "/{jbi}", status=204),
    Row(says="clean up", method="DELETE", path=V0 + "/images/{image_id}", status=204),
)
