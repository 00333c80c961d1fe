"""The closed tree of errors that a caller can see: each leaf fixes one status and one `error_name`.

Raised by any room for a fault that the caller (or the cloud behind the caller) has; everything that
is not a `SvcdError` is a bug and becomes a 500 with an incident id at the door. Messages say what,
where and what to do; they never hold a secret. `error_name` holds no ids and no names.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self


class SvcdError(Exception):
    """Root of all errors with an answer of their own.

    status: HTTP status, which is also `error_code`.
    name: the `error_name` of the body.
    headers: extra response headers (for example `Allow`, `Retry-After`).
    """

    status: ClassVar[int]
    name: ClassVar[str]

    def __init__(self, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.headers: Mapping[str, str] = headers or {}

    def below(self, path: str) -> Self:
        """The same fault of an object that stands at `path` of the body: its paths begin there."""
        moved = copy.copy(self)
        moved.message = "\n".join(
            path + line[1:] if line.startswith("$") else line for line in self.message.split("\n")
        )
        moved.args = (moved.message,)
        return moved


# ---- 400: the request ---------------------------------------------------------------------------


class MalformedBody(SvcdError):
    """The body is not UTF-8 JSON."""

    status = 400
    name = "MALFORMED_REQUEST_BODY"


class BadRequest(SvcdError):
    """The HTTP request itself cannot be understood."""

    status = 400
    name = "BAD_REQUEST"


class ValidationError(SvcdError):
    """The shape of the body is wrong. All faults are reported at once, one a line."""

    status = 400
    name = "VALIDATION_ERROR"

    @classmethod
    def of(cls, faults: Sequence[str]) -> ValidationError:
        """All `faults`, one a line, in the given order."""
        return cls("\n".join(faults))


class InvalidReference(SvcdError):
    """The body names something unknown or unusable, or the object is in use or in a wrong state."""

    status = 400
    name = "INVALID_REFERENCE"


class InvalidData(SvcdError):
    """Cross-field rules: duplicates, mains and libs by job type, missing input or output."""

    status = 400
    name = "INVALID_DATA"


class InvalidCredentials(SvcdError):
    """An object store source without user and password."""

    status = 400
    name = "INVALID_CREDENTIALS"


class BadJobBinary(SvcdError):
    """Empty upload, bad upload name, object store binary without user and password."""

    status = 400
    name = "BAD_JOB_BINARY"


class ImageNotRegistered(SvcdError):
    """The image exists in the cloud but is not registered."""

    status = 400
    name = "IMAGE_NOT_REGISTERED"


class DeletionFailed(SvcdError):
    """Something refers to the job, binary, internal binary or data source."""

    status = 400
    name = "DELETION_FAILED"


class InvalidComponentCount(SvcdError):
    """Topology: a process occurs too rarely or too often."""

    status = 400
    name = "INVALID_COMPONENT_COUNT"


class MissingService(SvcdError):
    """Topology: a process needs another one that is not there."""

    status = 400
    name = "MISSING_SERVICE"


class ClusterCannotBeScaled(SvcdError):
    """The distribution refuses the new size."""

    status = 400
    name = "CLUSTER_CANNOT_BE_SCALED"


class NodeGroupCannotBeScaled(SvcdError):
    """The distribution cannot change the size of this kind of group."""

    status = 400
    name = "NODE_GROUP_CANNOT_BE_SCALED"


class QuotaExceeded(SvcdError):
    """The quota of the cloud cannot hold the request: what is needed and what is left."""

    status = 400
    name = "QUOTA_ERROR"


class NameTaken(SvcdError):
    """A resource of this kind has the name in the tenant already."""

    status = 400
    name = "NAME_ALREADY_EXISTS"


class ClusterNameTaken(NameTaken):
    name = "CLUSTER_NAME_ALREADY_EXISTS"


class ClusterTemplateNameTaken(NameTaken):
    name = "CLUSTER_TEMPLATE_NAME_ALREADY_EXISTS"


class NodeGroupTemplateNameTaken(NameTaken):
    name = "NODE_GROUP_TEMPLATE_NAME_ALREADY_EXISTS"


class DataSourceNameTaken(NameTaken):
    name = "DATA_SOURCE_NAME_ALREADY_EXISTS"


class JobNameTaken(NameTaken):
    name = "JOB_NAME_ALREADY_EXISTS"


class JobBinaryNameTaken(NameTaken):
    name = "JOB_BINARY_NAME_ALREADY_EXISTS"


class JobBinaryInternalNameTaken(NameTaken):
    name = "JOB_BINARY_INTERNAL_NAME_ALREADY_EXISTS"


# ---- 4xx: access and HTTP -----------------------------------------------------------------------


class Unauthorized(SvcdError):
    """No token or a refused one; the door adds `WWW-Authenticate`."""

    status = 401
    name = "UNAUTHORIZED"


class Forbidden(SvcdError):
    """A valid token of another tenant, or the cloud forbids the caller the operation."""

    status = 403
    name = "FORBIDDEN"


class NotFound(SvcdError):
    """The id, name or version in the path. The message contains the words "not found"."""

    status = 404
    name = "NOT_FOUND"

    @classmethod
    def of(cls, what: str, key: str) -> NotFound:
        """For the `what` (for example "cluster") with the id or name `key`."""
        return cls(f"{what} {key!r} not found")


class MethodNotAllowed(SvcdError):
    status = 405
    name = "METHOD_NOT_ALLOWED"


class NotAcceptable(SvcdError):
    status = 406
    name = "NOT_ACCEPTABLE"


class RequestTimeout(SvcdError):
    status = 408
    name = "REQUEST_TIMEOUT"


class LengthRequired(SvcdError):
    status = 411
    name = "LENGTH_REQUIRED"


class ContentTooLarge(SvcdError):
    status = 413
    name = "CONTENT_TOO_LARGE"


class UriTooLong(SvcdError):
    status = 414
    name = "URI_TOO_LONG"


class UnsupportedMediaType(SvcdError):
    status = 415
    name = "UNSUPPORTED_MEDIA_TYPE"


class HeadersTooLarge(SvcdError):
    status = 431
    name = "REQUEST_HEADER_FIELDS_TOO_LARGE"


# ---- 5xx: ours, and those behind us -------------------------------------------------------------


class InternalError(SvcdError):
    """A bug: generic text with the incident id that the log carries too. Made by the door only."""

    status = 500
    name = "INTERNAL_SERVER_ERROR"


class PlatformError(SvcdError):
    """Cloud or workflow engine answered with a fault of its own."""

    status = 502
    name = "PLATFORM_ERROR"


class ServiceUnavailable(SvcdError):
    """Cloud, engine or database cannot be reached now; carries `Retry-After`."""

    status = 503
    name = "SERVICE_UNAVAILABLE"

    def __init__(self, message: str, retry_after_s: int = 5) -> None:
        super().__init__(message, {"Retry-After": str(retry_after_s)})


class PlatformTimeout(SvcdError):
    """Cloud or engine did not answer within its time."""

    status = 504
    name = "PLATFORM_TIMEOUT"
