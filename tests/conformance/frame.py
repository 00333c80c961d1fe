"""Versions, media types, routing and the errors of the frame."""

from __future__ import annotations

from tests.conformance.bodies import JSON, NGTS_AT, V0, V1, unknown
from tests.conformance.rows import Has, Holds, Row


def raw(says: str, data: bytes, status: int, error: str, **send: str) -> Row:
    """A POST of raw bytes to node-group-templates."""
    headers = {k.replace("_", "-"): v for k, v in send.items()}
    return Row(
        says=says, method="POST", path=NGTS_AT, data=data, send=headers, status=status, error=error
    )


FRAME = (
    Row(
        says="GET / lists the version v1.0 without a token",
        path="/",
        headers=JSON,
        body={"versions": Has({"id": "v1.0"})},
    ),
    Row(says="GET / lists the version v1.1", path="/", body={"versions": Has({"id": "v1.1"})}),
    Row(says="health", path="/healthz", body={"status": "ok"}),
    Row(says="metrics", path="/metrics", headers={"content-type": Holds(("text/plain",))}),
    Row(
        says=".json may follow the resource name",
        path=NGTS_AT + ".json",
        send={"accept": "text/html"},
        headers=JSON,
        body={"node_group_templates": list},
    ),
    *(
        Row(
            says=f"Accept {accept} takes JSON",
            path=NGTS_AT,
            send={"accept": accept},
            headers=JSON,
        )
        for accept in (
            "application/json",
            "*/*",
            "application/*",
            "text/html, application/json;q=0.5",
            "text/html, */*;q=0.1",
            "Application/JSON; charset=utf-8",
        )
    ),
    *(
        Row(
            says=f"Accept {accept} excludes JSON",
            path=NGTS_AT,
            send={"accept": accept},
            status=406,
            error="NOT_ACCEPTABLE",
        )
        for accept in ("text/html", "application/xml", "application/json;q=0, text/html")
    ),
    raw("text is no JSON", b"{}", 415, "UNSUPPORTED_MEDIA_TYPE", content_type="text/plain"),
    raw("a form is no JSON", b"a=1", 415, "UNSUPPORTED_MEDIA_TYPE", content_type="x/form"),
    raw("a body without a media type", b"{}", 415, "UNSUPPORTED_MEDIA_TYPE"),
    Row(
        says="a compressed body is refused",
        method="POST",
        path=NGTS_AT,
        data=b"\x1f\x8b",
        send={"content-type": "application/json", "content-encoding": "gzip"},
        status=415,
        error="UNSUPPORTED_MEDIA_TYPE",
        headers={"accept-encoding": "identity"},
    ),
    *(
        raw(f"{data!r} is no JSON", data, 400, "MALFORMED_REQUEST_BODY", content_type=kind)
        for data, kind in (
            (b"{", "application/json"),
            (b"{} x", "application/json"),
            (b"\xef\xbb\xbf{}", "application/json"),
            (b'{"name": "\xff"}', "application/json"),
            (b"{'name': 1}", "application/json; charset=utf-8"),
            (b'{"name": NaN}', "application/json"),
            (b"[" * 50_000, "application/json"),
        )
    ),
    *(
        raw(
            f"{data!r} is no object", data, 400, "VALIDATION_ERROR", content_type="application/json"
        )
        for data in (b"[1]", b'"a"', b"1", b"null", b"true")
    ),
    *(
        unknown(f"{method} {path}", method, path)
        for method, path in (
            ("GET", "/nope"),
            ("GET", "/v1.0"),
            ("GET", V1),
            ("GET", V1 + "/nope"),
            ("GET", "/v2/{tenant}/clusters"),
            ("GET", V0 + "//clusters"),
            ("GET", V0 + "/clusters/a/b/c"),
            ("GET", V0 + "/clusters/a%2Fb"),
            ("GET", V0 + "/clusters/%00"),
            ("GET", V0 + "/clusters/%ff"),
            ("GET", V0 + "/clusters/%zz"),
            ("GET", V0 + "/clusters/NOPE"),
            ("GET", V0 + "/jobs"),
            ("GET", V0 + "/job-executions"),
            ("GET", V0 + "/job-binaries"),
            ("GET", V0 + "/job-binary-internals"),
        )
    ),
    Row(
        says="a trailing slash is accepted", path=NGTS_AT + "/", body={"node_group_templates": list}
    ),
    Row(says="unknown query parameters are ignored", path=NGTS_AT + "?zzz=1", status=200),
    *(
        Row(
            says=f"a misspelled query parameter is refused: {path}",
            method=method,
            path=V1 + path,
            status=400,
            error="VALIDATION_ERROR",
            message=Holds((f"did you mean {right}?",)),
        )
        for method, path, right in (
            ("GET", "/node-group-templates?limt=3", "limit"),
            ("GET", "/clusters?Status=Active", "status"),
            ("GET", "/images?tag=a", "tags"),
            ("DELETE", "/clusters/x?forse=true", "force"),
        )
    ),
    Row(
        says="force of a deletion is true or false",
        method="DELETE",
        path=V1 + "/clusters/x?force=WRONG",
        status=400,
        error="VALIDATION_ERROR",
        message="?force: expected true or false, got WRONG",
    ),
    Row(
        says="a misspelled query parameter is ignored under v1.0",
        path=V0 + "/node-group-templates?limt=3",
        status=200,
    ),
    Row(
        says="an empty Accept excludes nothing",
        path=NGTS_AT,
        send={"accept": ""},
        status=200,
    ),
    Row(
        says="HEAD works like GET without the body",
        method="HEAD",
        path=NGTS_AT,
        headers=JSON,
        raw=b"",
    ),
    Row(
        says="HEAD of an unknown node group template",
        method="HEAD",
        path=NGTS_AT + "/nope",
        status=404,
        raw=b"",
    ),
    Row(
        says="OPTIONS answers Allow",
        method="OPTIONS",
        path=NGTS_AT,
        headers={"allow": "GET, HEAD, OPTIONS, POST"},
    ),
    *(
        Row(
            says=f"{method} is not a method of a list",
            method=method,
            path=NGTS_AT,
            status=405,
            error="METHOD_NOT_ALLOWED",
            headers={"allow": "GET, HEAD, OPTIONS, POST"},
        )
        for method in ("PUT", "DELETE", "PATCH")
    ),
    Row(
        says="POST is not a method of plugins",
        method="POST",
        path=V0 + "/plugins",
        json={},
        status=405,
        error="METHOD_NOT_ALLOWED",
    ),
    Row(
        says="a sane request id is kept",
        path=NGTS_AT,
        send={"x-request-id": "my.id-1"},
        headers={"x-request-id": "my.id-1"},
    ),
    Row(
        says="a sane request id is kept on errors",
        path="/nope",
        send={"x-request-id": "my.id-2"},
        status=404,
        error="NOT_FOUND",
        headers={"x-request-id": "my.id-2"},
    ),
    Row(
        says="limit is a number (v1.1)",
        path=V1 + "/clusters?limit=x",
        status=400,
        error="VALIDATION_ERROR",
    ),
    Row(says="limit is ignored under v1.0", path=V0 + "/clusters?limit=x"),
    unknown("an unknown marker of a list", "GET", V1 + "/clusters?marker=nope"),
    Row(says="a GET's body is ignored", path=NGTS_AT, data=b"{", status=200),
)
