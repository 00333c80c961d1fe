"""The document of `/openapi.json`: OpenAPI 3.1, made from the routes and the request shapes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

import msgspec

from svcd.model.shapes import Shape
from svcd.model.wire_jobs import OPEN
from svcd.resources._policy import Needs
from svcd.resources._route import Raw, Route

Json: TypeAlias = dict[str, Any]

_REF = "#/components/schemas/{name}"
_ERROR = {
    "type": "object",
    "description": "Every error has exactly these attributes.",
    "properties": {
        "error_code": {"type": "integer", "description": "the HTTP status"},
        "error_name": {"type": "string", "description": "the kind of error, without ids or names"},
        "error_message": {"type": "string", "description": "for a person; one fault a line"},
    },
    "required": ["error_code", "error_name", "error_message"],
    "additionalProperties": False,
}
_PAGING = ("limit", "marker")
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": (
        "A retry with the same key and the same request gets the first answer again for 24 hours,"
        " with Idempotent-Replayed: true, and makes nothing. Another request with the key is"
        " refused with 409 IDEMPOTENCY_KEY_REUSED."
    ),
    "schema": {"type": "string", "pattern": "^[!-~]+$", "minLength": 1, "maxLength": 255},
}


def document(routes: Sequence[Route]) -> Json:
    """The OpenAPI document of `routes`."""
    shapes = {each.spec.body.cls for each in routes if isinstance(each.spec.body, Shape)}
    shapes |= {_answer_of(each)[0] for each in routes if _is_json(each)}
    ordered = sorted(shapes, key=lambda cls: cls.__name__)
    refs, schemas = msgspec.json.schema_components(ordered, ref_template=_REF)
    for name, schema in schemas.items():
        if schema.get("type") == "object" and "properties" in schema and name not in OPEN:
            schema["additionalProperties"] = False
    schemas["Error"] = _ERROR
    by_class = dict(zip(ordered, refs, strict=True))
    paths: Json = {}
    # OpenAPI has one path for rules that differ only in the names of their variables.
    first: dict[str, str] = {}
    for each in routes:
        path = first.setdefault(
            re.sub(r"<\w+>", "{}", each.pattern), re.sub(r"<(\w+)>", r"{\1}", each.pattern)
        )
        paths.setdefault(path, {})[each.method.lower()] = _operation(each, path, by_class)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Cluster provisioning and data processing",
            "version": "1.1",
            "description": "v1.0 manages clusters; v1.1 adds data processing.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}
            },
        },
        "security": [{"token": []}],
    }


def _operation(made: Route, path: str, by_class: dict[type, Json]) -> Json:
    text = inspect.getdoc(made.handler) or ""
    operation: Json = {
        "operationId": re.sub(r"\W+", "_", f"{made.method} {made.pattern}").strip("_").lower(),
        "summary": text.split("\n")[0],
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"\{(\w+)\}", path)
        ],
        "responses": {
            str(made.spec.success): _success(made, by_class),
            "default": {
                "description": "an error",
                "content": {"application/json": {"schema": {"$ref": _REF.format(name="Error")}}},
            },
        },
    }
    if made.spec.needs is Needs.OPEN:
        operation["security"] = []
    operation["parameters"] += [
        {
            "name": each.name,
            "in": "query",
            "description": each.text,
            "schema": {"type": "integer", "minimum": 0, "maximum": each.most},
        }
        for each in made.spec.query
    ]
    if made.spec.headers:
        operation["responses"][str(made.spec.success)]["headers"] = {
            name: {"description": text, "schema": {"type": "string"}}
            for name, text in made.spec.headers.items()
        }
    pages = _is_json(made) and _answer_of(made)[1] and not made.spec.query
    if pages and made.pattern.startswith("/v1.1/"):
        operation["parameters"] += [
            {"name": name, "in": "query", "schema": {"type": "string"}} for name in _PAGING
        ]
    if made.spec.creates:
        operation["parameters"].append(_IDEMPOTENCY_KEY)
    if isinstance(made.spec.body, Shape):
        schema = by_class[made.spec.body.cls]
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema}},
        }
    elif isinstance(made.spec.body, Raw):
        types = made.spec.body.types or ("application/octet-stream",)
        operation["requestBody"] = {"required": True, "content": {each: {} for each in types}}
    return operation


def _is_json(made: Route) -> bool:
    return not made.spec.plain and made.spec.success != 204


def _answer_of(made: Route) -> tuple[type, bool]:
    """The class in the handler's return annotation, and whether the answer is a list of it.

    `Annotated[bytes, Cluster]` is the JSON text of a Cluster.
    """
    answer = get_type_hints(made.handler, include_extras=True)["return"]
    many = get_origin(answer) is Sequence
    if many:
        (answer,) = get_args(answer)
    if get_origin(answer) is Annotated:
        answer = get_args(answer)[1]
    return answer, many


def _success(made: Route, by_class: dict[type, Json]) -> Json:
    if made.spec.success == 204:
        return {"description": "done"}
    if made.spec.plain:
        return {"description": "the data", "content": {"*/*": {}}}
    answer, many = _answer_of(made)
    schema: Any = by_class[answer]
    if made.spec.returns is not None:
        inner = {"type": "array", "items": schema} if many else schema
        schema = {
            "type": "object",
            "properties": {made.spec.returns: inner},
            "required": [made.spec.returns],
        }
    return {
        "description": "accepted" if made.spec.success == 202 else "found",
        "content": {"application/json": {"schema": schema}},
    }
