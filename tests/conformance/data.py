"""Data sources, internal job binaries and job binaries."""

from __future__ import annotations

import re

from tests.conformance.bodies import (
    BINARIES_AT,
    BINARY,
    BINARY_FIELDS,
    COMMANDS,
    INTERNAL_FIELDS,
    INTERNALS_AT,
    JSON,
    SOURCE,
    SOURCES_AT,
    UPLOAD,
    V0,
    refused,
    unknown,
)
from tests.conformance.rows import ID, STAMP, Each, Has, Holds, Only, Row

SOURCE_FIELDS = {
    "id": ID,
    "name": "in-{run}",
    "description": "words",
    "type": "objstore",
    "url": "objstore://box.svc/in",
    "credentials": Only({"user": "u", "password": "p"}),
    "tenant_id": "{tenant}",
    "created_at": STAMP,
}

DATA_SOURCES = (
    Row(
        says="POST data-sources: 202; the create response omits updated_at",
        method="POST",
        path=SOURCES_AT,
        json=SOURCE,
        status=202,
        headers=JSON,
        body=Only({"data_source": Only(SOURCE_FIELDS)}),
        save={"in": ("data_source", "id")},
    ),
    Row(
        says="GET data-sources/ID: 200, updated_at null, credentials returned",
        path=SOURCES_AT + "/{in}",
        body=Only({"data_source": Only({**SOURCE_FIELDS, "id": "{in}", "updated_at": None})}),
    ),
    Row(
        says="GET data-sources: 200",
        path=SOURCES_AT,
        body=Only({"data_sources": Has(Only({**SOURCE_FIELDS, "id": "{in}", "updated_at": None}))}),
    ),
    refused("a data source name is unique", SOURCE, SOURCES_AT, "DATA_SOURCE_NAME_ALREADY_EXISTS"),
    *(
        refused(
            f"{name} of a data source is required",
            {k: v for k, v in SOURCE.items() if k != name},
            SOURCES_AT,
            message=Holds((f"$.{name}: missing",)),
        )
        for name in ("name", "type", "url")
    ),
    refused("credentials of a data source as list", {**SOURCE, "credentials": []}, SOURCES_AT),
    refused("a data source of an unknown type", {**SOURCE, "type": "x"}, SOURCES_AT),
    *(
        refused(f"a data source with the name {name!r}", {**SOURCE, "name": name}, SOURCES_AT)
        for name in ("", "a" * 51, "a b", "_a", ".a", "a/b", "é", "a@b")
    ),
    refused(
        "a data source in the object store without credentials",
        {**SOURCE, "name": "nc-{run}", "credentials": {}},
        SOURCES_AT,
        "INVALID_CREDENTIALS",
        needs=COMMANDS,
    ),
    *(
        refused(
            f"a {kind} source with {part} alone",
            {**SOURCE, "name": "nc-{run}", "type": kind, "credentials": {part: "x"}},
            SOURCES_AT,
            "INVALID_CREDENTIALS",
            needs=COMMANDS,
        )
        for kind in ("objstore", "hdfs")
        for part in ("user", "password")
    ),
    Row(
        says="a data source name may start with a digit and hold _",
        method="POST",
        path=SOURCES_AT,
        json={**SOURCE, "name": "1_{run}"},
        status=202,
        save={"in2": ("data_source", "id")},
    ),
    unknown("GET of an unknown data source", "GET", SOURCES_AT + "/nope"),
    unknown("DELETE of an unknown data source", "DELETE", SOURCES_AT + "/nope"),
    Row(
        says="DELETE of a data source: 204",
        method="DELETE",
        path=SOURCES_AT + "/{in2}",
        status=204,
        raw=b"",
    ),
    Row(says="clean up", method="DELETE", path=SOURCES_AT + "/{in}", status=204),
    unknown("v1.0 has no data sources", "GET", V0 + "/data-sources"),
)

DATA_HEADERS = {"content-type": "text/html; charset=utf-8", "content-length": "11"}

JOB_BINARY_INTERNALS = (
    UPLOAD,
    Row(
        says="GET job-binary-internals: wrapped under binaries",
        path=INTERNALS_AT,
        body=Only({"binaries": Has(INTERNAL_FIELDS)}),
    ),
    Row(
        says="GET job-binary-internals/ID: 200",
        path=INTERNALS_AT + "/{jbi}",
        body=Only({"job_binary_internal": INTERNAL_FIELDS}),
    ),
    Row(
        says="GET .../data: raw stored data, Content-Length, text/html; charset=utf-8",
        path=INTERNALS_AT + "/{jbi}/data",
        headers=DATA_HEADERS,
        raw=b"A = load 1;",
    ),
    Row(
        says="GET .../data: raw also for a client that asks for JSON",
        path=INTERNALS_AT + "/{jbi}/data",
        send={"accept": "application/json"},
        raw=b"A = load 1;",
    ),
    Row(
        says="the media type of an upload is ignored",
        method="PUT",
        path=INTERNALS_AT + "/{run}.json",
        data=b"a=1&b=2",
        send={"content-type": "application/x-www-form-urlencoded"},
        status=202,
        body={"job_binary_internal": {"name": "{run}.json", "datasize": 7}},
        save={"jbi2": ("job_binary_internal", "id")},
    ),
    *(
        Row(
            says=f"a body in Content-Encoding {coding} is refused",
            method="PUT",
            path=INTERNALS_AT + "/coded",
            data=b"\x1f\x8b",
            send={"content-encoding": coding},
            status=415,
            error="UNSUPPORTED_MEDIA_TYPE",
            message=Holds((coding,)),
            headers={"accept-encoding": "identity"},
        )
        for coding in ("gzip", "identity, br", "aws-chunked")
    ),
    Row(
        says="an upload in a Content-Encoding is not stored",
        path=INTERNALS_AT,
        body=Only({"binaries": Each({"name": re.compile("(?!coded)")})}),
    ),
    Row(
        says="the body as it is has the coding identity",
        method="PUT",
        path=INTERNALS_AT + "/{run}.plain",
        data=b"a",
        send={"content-encoding": "Identity"},
        status=202,
        save={"jbi3": ("job_binary_internal", "id")},
    ),
    Row(says="clean up", method="DELETE", path=INTERNALS_AT + "/{jbi3}", status=204),
    Row(
        says="an internal binary name is unique",
        method="PUT",
        path=INTERNALS_AT + "/{run}.json",
        data=b"x",
        status=400,
        error="JOB_BINARY_INTERNAL_NAME_ALREADY_EXISTS",
    ),
    Row(
        says="an empty upload",
        method="PUT",
        path=INTERNALS_AT + "/empty",
        data=b"",
        status=400,
        error="BAD_JOB_BINARY",
    ),
    *(
        Row(
            says=f"a bad name of an upload: {name}",
            method="PUT",
            path=INTERNALS_AT + "/" + name,
            data=b"x",
            status=400,
            error="BAD_JOB_BINARY",
        )
        for name in ("a%20b", ".a", "a@b", "a" * 51, "%C3%A9")
    ),
    unknown("an upload whose name has a slash", "PUT", INTERNALS_AT + "/a%2Fb", data=b"x"),
    unknown("GET of an unknown internal binary", "GET", INTERNALS_AT + "/nope"),
    unknown("data of an unknown internal binary", "GET", INTERNALS_AT + "/nope/data"),
    unknown("DELETE of an unknown internal binary", "DELETE", INTERNALS_AT + "/nope"),
    Row(
        says="DELETE of an internal binary: 204",
        method="DELETE",
        path=INTERNALS_AT + "/{jbi2}",
        status=204,
        raw=b"",
    ),
    Row(says="clean up", method="DELETE", path=INTERNALS_AT + "/{jbi}", status=204),
)

STORED = {
    "name": "os-{run}",
    "url": "objstore-internal://box/script.pig",
    "extra": {"user": "u", "password": "p"},
}

JOB_BINARIES = (
    UPLOAD,
    Row(
        says="POST job-binaries: 202; the create response omits updated_at; extra {} when unused",
        method="POST",
        path=BINARIES_AT,
        json=BINARY,
        status=202,
        headers=JSON,
        body=Only({"job_binary": Only(BINARY_FIELDS)}),
        save={"jb": ("job_binary", "id")},
    ),
    Row(
        says="GET job-binaries/ID: 200",
        path=BINARIES_AT + "/{jb}",
        body=Only({"job_binary": Only({**BINARY_FIELDS, "updated_at": None})}),
    ),
    Row(
        says="GET job-binaries: wrapped under binaries",
        path=BINARIES_AT,
        body=Only({"binaries": Has(Only({**BINARY_FIELDS, "updated_at": None}))}),
    ),
    Row(
        says="GET job-binaries/ID/data: raw data",
        path=BINARIES_AT + "/{jb}/data",
        headers=DATA_HEADERS,
        raw=b"A = load 1;",
    ),
    Row(
        says="a binary in the object store, with user and password",
        method="POST",
        path=BINARIES_AT,
        json=STORED,
        status=202,
        body={"job_binary": {"extra": Only({"user": "u", "password": "p"})}},
        save={"jb2": ("job_binary", "id")},
    ),
    Row(
        says="file_name of a job binary is optional; the answer has it as given",
        method="POST",
        path=BINARIES_AT,
        json={**BINARY, "name": "fn-{run}", "file_name": "_my größe\r.csv"},
        status=202,
        body={"job_binary": {"name": "fn-{run}", "file_name": "_my größe\r.csv"}},
        save={"jb3": ("job_binary", "id")},
    ),
    Row(says="DELETE it: 204", method="DELETE", path=BINARIES_AT + "/{jb3}", status=204),
    refused(
        "a file_name that no file can have",
        {**BINARY, "name": "fn-{run}", "file_name": "a/b"},
        BINARIES_AT,
        "INVALID_DATA",
        needs=COMMANDS,
    ),
    refused("a job binary name is unique", BINARY, BINARIES_AT, "JOB_BINARY_NAME_ALREADY_EXISTS"),
    refused("name of a job binary is required", {"url": "internaldb://x"}, BINARIES_AT),
    refused("url of a job binary is required", {"name": "a"}, BINARIES_AT),
    refused("extra of a job binary as list", {**BINARY, "extra": []}, BINARIES_AT),
    refused(
        "a job binary of an unknown internal binary",
        {**BINARY, "name": "u-{run}", "url": "internaldb://nope"},
        BINARIES_AT,
        "INVALID_REFERENCE",
        needs=COMMANDS,
    ),
    *(
        refused(
            f"a binary {url} with {part} alone",
            {"name": "w-{run}", "url": url, "extra": {part: "x"}},
            BINARIES_AT,
            "INVALID_CREDENTIALS",
            needs=COMMANDS,
        )
        for url in ("internaldb://{jbi}", "objstore-internal://box/o")
        for part in ("user", "password")
    ),
    refused(
        "a job binary in the object store without user and password",
        {**STORED, "name": "w-{run}", "extra": {}},
        BINARIES_AT,
        "BAD_JOB_BINARY",
        needs=COMMANDS,
    ),
    Row(
        says="an internal binary that is pointed to cannot be deleted",
        method="DELETE",
        path=INTERNALS_AT + "/{jbi}",
        status=400,
        error="DELETION_FAILED",
        message=Holds(("jb-{run}",)),
    ),
    unknown("GET of an unknown job binary", "GET", BINARIES_AT + "/nope"),
    unknown("data of an unknown job binary", "GET", BINARIES_AT + "/nope/data"),
    unknown("DELETE of an unknown job binary", "DELETE", BINARIES_AT + "/nope"),
    Row(
        says="DELETE of a job binary: 204",
        method="DELETE",
        path=BINARIES_AT + "/{jb2}",
        status=204,
        raw=b"",
    ),
    Row(says="clean up", method="DELETE", path=BINARIES_AT + "/{jb}", status=204),
    Row(says="clean up", method="DELETE", path=INTERNALS_AT + "/{jbi}", status=204),
)
