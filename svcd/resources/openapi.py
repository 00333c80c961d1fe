"""The document of `/openapi.json`: OpenAPI 3.1, made from the routes and the request shapes.

Note: the ids of operations. They are verb and noun, as `createCluster`; those of v1.0 end in `V10`.
The handler's name is the verb and its class the noun, unless the route says `operation`. The twins
by GET of two POST routes end in `ByGet`.

Note: errors. The document derives what the door itself can answer: from the token, the policy, the
body, the query, the path. A route says the rest in `raises`. `x-error-names` has the names.

Note: meanings. msgspec puts those of `svcd.model.fields`, `requests` and `wire` into the schemas.
JobConfigs has none, because the commands load its module without msgspec; its fields mean the same
as those of ExecutionConfigs.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeAlias, cast, get_args, get_origin, get_type_hints

import msgspec

from svcd import errors
from svcd.errors import SvcdError
from svcd.model.shapes import Shape
from svcd.model.wire_jobs import OPEN
from svcd.resources._policy import Needs
from svcd.resources._route import Raw, Route

Json: TypeAlias = dict[str, Any]

_REF: Final = "#/components/schemas/{name}"
_REFUSAL: Final = "#/components/responses/{name}"
_SERVICE: Final = "service"
"""The tag of the routes without a tenant."""
_ERROR: Final[Json] = {
    "type": "object",
    "description": "Every error has exactly these attributes.",
    "properties": {
        "error_code": {"type": "integer", "description": "the HTTP status"},
        "error_name": {"type": "string", "description": "kind of error, without ids or names"},
        "error_message": {"type": "string", "description": "for a person; one fault a line"},
    },
    "required": ["error_code", "error_name", "error_message"],
    "additionalProperties": False,
}
VARIABLES: Final[Mapping[str, str]] = {
    "tenant_id": "the tenant, which is the project of the token",
    "binary_id": "id of the binary; for PUT the name of the new one",
    "cluster_id": "id of the cluster",
    "data_source_id": "id of the data source",
    "execution_id": "id of the job execution",
    "file_name": "name of a file of the console",
    "image_id": "id of the image in the cloud",
    "job_id": "id of the job",
    "job_type": "type of the job",
    "plugin_name": "name of the plugin",
    "rule_id": "id of the fault",
    "template_id": "id of the template",
    "template_name": "name of the new template",
    "version": "version of the plugin",
}
"""Variable of a path -> text."""
_BYTES: Final = {"type": "string", "format": "binary"}
_IDEMPOTENCY_KEY: Final[Json] = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": (
        "A retry with the same key and the same request gets the first answer again for 24 hours,"
        " with Idempotent-Replayed: true, and makes nothing. Another request with the key is"
        " refused with 409 IDEMPOTENCY_KEY_REUSED."
    ),
    "schema": {"type": "string", "pattern": "^[!-~]+$", "minLength": 1, "maxLength": 255},
}
_ALWAYS: Final = (
    errors.BadRequest,
    errors.Forbidden,
    errors.InternalError,
    errors.ServiceUnavailable,
    errors.PlatformTimeout,
)
_OF_TENANT: Final = (errors.Unauthorized, errors.TooManyRequests, errors.PlatformError)
_OF_BODY: Final = (
    errors.RequestTimeout,
    errors.LengthRequired,
    errors.ContentTooLarge,
    errors.UnsupportedMediaType,
)
_OF_SHAPE: Final = (errors.MalformedBody, errors.ValidationError)
_OF_KEY: Final = (errors.IdempotencyKeyReused, errors.ValidationError, errors.QuotaExceeded)


def document(routes: Sequence[Route]) -> Json:
    """The OpenAPI document of `routes`."""
    shapes = {route.spec.body.cls for route in routes if isinstance(route.spec.body, Shape)}
    shapes |= {_answer_of(route)[0] for route in routes if _is_json(route)}
    shapes |= {_plan_of(route) for route in routes if route.plan is not None}
    ordered = sorted(shapes, key=lambda cls: cls.__name__)
    refs, schemas = msgspec.json.schema_components(ordered, ref_template=_REF)
    schemas["Error"] = _ERROR
    for name, schema in schemas.items():
        if "description" in schema:
            schema["description"] = _words(schema["description"])
        for described in schema.get("properties", {}).values():
            _raise_meaning(described)
        if schema.get("type") == "object" and "properties" in schema and name not in OPEN:
            schema["additionalProperties"] = False
    for field, described in schemas["ExecutionConfigs"]["properties"].items():
        schemas["JobConfigs"]["properties"][field]["description"] = described["description"]
    by_class = dict(zip(ordered, refs, strict=True))
    paths: Json = {}
    # OpenAPI has one path for rules that differ only in the names of their variables.
    first: dict[str, str] = {}
    for route in routes:
        path = first.setdefault(
            re.sub(r"<\w+>", "{}", route.pattern), re.sub(r"<(\w+)>", r"{\1}", route.pattern)
        )
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, path, by_class)
    tags = {_tag_of(route): inspect.getdoc(type(_resource_of(route))) or "" for route in routes}
    tags[_SERVICE] = "The daemon: versions, health, metrics, and this description."
    alone = {
        raised[0] for route in routes for raised in _errors(route).values() if len(raised) == 1
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Cluster provisioning and data processing",
            "version": "1.1",
            "description": "v1.0 manages clusters; v1.1 adds data processing.",
        },
        "tags": [{"name": name, "description": text} for name, text in tags.items()],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {
                cls.__name__: _refusal([cls]) for cls in sorted(alone, key=lambda cls: cls.__name__)
            },
            "securitySchemes": {
                "token": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-Auth-Token",
                    "description": "a token of the identity service for the project in the path",
                }
            },
        },
        "security": [{"token": []}],
    }


def _raise_meaning(described: Json) -> None:
    """Put the meaning of a field that may be null beside its types: msgspec has it in one."""
    for choice in described.get("anyOf", ()):
        meaning = choice.pop("description", None)
        if meaning is not None:
            described.setdefault("description", meaning)


def _operation(route: Route, path: str, by_class: Mapping[type, Json]) -> Json:
    spec = route.spec
    summary, _, more = (inspect.getdoc(route.handler) or "").partition("\n\n")
    operation: Json = {
        "operationId": _id_of(route),
        "tags": [_tag_of(route)],
        "summary": _words(summary),
        "parameters": [*_parameters(route, path)],
        "responses": {str(spec.success): _success(route, by_class)},
    }
    if route.plan is not None and _version_of(route) != "1.0":
        operation["responses"]["200"] = _planned(by_class[_plan_of(route)])
    if more:
        operation["description"] = _words(more)
    for status, raised in sorted(_errors(route).items()):
        operation["responses"][str(status)] = (
            {"$ref": _REFUSAL.format(name=raised[0].__name__)}
            if len(raised) == 1
            else _refusal(raised)
        )
    operation["responses"]["default"] = {"description": "Another error.", **_error_content()}
    if spec.needs is Needs.OPEN:
        operation["security"] = []
    if isinstance(spec.body, Shape):
        content = {"application/json": {"schema": by_class[spec.body.cls]}}
        operation["requestBody"] = {"required": True, "content": content}
    elif isinstance(spec.body, Raw):
        types = spec.body.types or ("application/octet-stream",)
        operation["requestBody"] = {
            "required": True,
            "content": {media: {"schema": _schema_of(media)} for media in types},
        }
    return operation


def _resource_of(route: Route) -> Any:
    return route.handler.__self__  # type: ignore[attr-defined]


def _id_of(route: Route) -> str:
    """The id of the operation; see the note."""
    name = route.spec.operation
    if not name:
        verb, *rest = route.handler.__name__.split("_")
        plural = type(_resource_of(route)).__name__
        noun = plural if verb == "list" else re.sub("ie$", "y", plural.removesuffix("s"))
        name = verb + "".join(map(str.capitalize, rest)) + noun
    if route.pattern.endswith("/<template_name>"):
        name += "To"  # two paths of one handler
    return name + ("V10" if _version_of(route) == "1.0" else "")


def _version_of(route: Route) -> str:
    """The version of the interface; "" for a route without one."""
    version = re.match(r"/v(1\.\d)/", route.pattern)
    return version[1] if version else ""


def _tag_of(route: Route) -> str:
    if route.spec.needs is Needs.OPEN:
        return _SERVICE
    name = type(_resource_of(route)).__name__
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def _words(text: str) -> str:
    """A docstring as a text for callers."""
    return " ".join(text.replace(" (additive)", "").split())


# ---- parameters ---------------------------------------------------------------------------------


def _parameters(route: Route, path: str) -> Iterator[Json]:
    for name in re.findall(r"\{(\w+)\}", path):
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "description": VARIABLES[name],
            "schema": {"type": "string"},
        }
    for query in _query(route):
        yield {
            "name": query.name,
            "in": "query",
            "description": query.text,
            "schema": query.schema(),
        }
        if query.header:
            yield {
                "name": query.header,
                "in": "header",
                "description": f"replaces `{query.name}`",
                "schema": query.schema(),
            }
    if route.spec.creates:
        yield _IDEMPOTENCY_KEY


def _query(route: Route) -> Sequence[Any]:
    old = _version_of(route) == "1.0"
    return [query for query in route.spec.queries.declared if query.always or not old]


# ---- answers ------------------------------------------------------------------------------------


def _is_json(route: Route) -> bool:
    return not route.spec.plain and route.spec.success != 204


def _answer_of(route: Route) -> tuple[type, bool]:
    """The class in the handler's return annotation, and whether the answer is a list of it.

    `Annotated[bytes, Cluster]` is the JSON text of a Cluster.
    """
    answer = get_type_hints(route.handler, include_extras=True)["return"]
    many = get_origin(answer) is Sequence
    if many:
        (answer,) = get_args(answer)
    if get_origin(answer) is Annotated:
        answer = get_args(answer)[1]
    return answer, many


def _plan_of(route: Route) -> type:
    """The class of the answer to a dry run."""
    return cast("type", get_type_hints(route.plan)["return"])


def _planned(schema: Json) -> Json:
    wrapped = {"type": "object", "properties": {"plan": schema}, "required": ["plan"]}
    return {
        "description": "The plan of a dry run.",
        "content": {"application/json": {"schema": wrapped}},
    }


def _success(route: Route, by_class: Mapping[type, Json]) -> Json:
    spec = route.spec
    if spec.success == 204:
        return {"description": "Done."}
    described: Json
    if spec.plain:
        described = {
            "description": "The data.",
            "content": {spec.media: {"schema": _schema_of(spec.media)}},
        }
    else:
        answer, many = _answer_of(route)
        schema: Any = by_class[answer]
        if spec.returns is not None:
            inner = {"type": "array", "items": schema} if many else schema
            schema = {
                "type": "object",
                "properties": {spec.returns: inner},
                "required": [spec.returns],
            }
        described = {
            "description": "Accepted." if spec.success == 202 else "Found.",
            "content": {"application/json": {"schema": schema}},
        }
    if spec.headers:
        described["headers"] = {
            name: {"description": text, "schema": {"type": "string"}}
            for name, text in spec.headers.items()
        }
    return described


def _schema_of(media: str) -> Json:
    """The schema of a body with a media type and no shape."""
    if media == "application/json":
        return {"type": "object"}
    return {"type": "string"} if media.startswith("text/") else _BYTES


def _errors(route: Route) -> Mapping[int, Sequence[type[SvcdError]]]:
    """Status -> the errors that the route can answer with it, in the order of their names."""
    spec = route.spec
    raised: set[type[SvcdError]] = {*_ALWAYS, *spec.raises}
    if spec.needs is not Needs.OPEN:
        raised.update(_OF_TENANT)
    if not spec.plain:
        raised.add(errors.NotAcceptable)
    if spec.body is not None:
        raised.update(_OF_BODY)
    if isinstance(spec.body, Shape):
        raised.update(_OF_SHAPE)
    if _query(route):
        raised.add(errors.ValidationError)
    if spec.creates:
        raised.update(_OF_KEY)
    has_marker = any(query.name == "marker" for query in _query(route))
    if has_marker or spec.exists or set(route.names) - {"tenant_id"}:
        raised.add(errors.NotFound)
    by_status: dict[int, list[type[SvcdError]]] = {}
    for error in sorted(raised, key=lambda cls: cls.name):
        by_status.setdefault(error.status, []).append(error)
    return by_status


def _refusal(raised: Sequence[type[SvcdError]]) -> Json:
    lines = [f"`{error.name}`: {_meaning(error)}" for error in raised]
    return {
        "description": "\n\n".join(lines),
        "x-error-names": [error.name for error in raised],
        **_error_content(),
    }


def _meaning(error: type[SvcdError]) -> str:
    """The meaning of an error: the docstring of its class, or of the parent."""
    text = inspect.getdoc(error) if error.__doc__ or error.__base__ is not SvcdError else None
    return _words(text) if text else f"{HTTPStatus(error.status).phrase.capitalize()}."


def _error_content() -> Json:
    return {"content": {"application/json": {"schema": {"$ref": _REF.format(name="Error")}}}}
