"""The closed tree of errors that a caller can see: each leaf fixes one status and one `error_name`.

Every room raises them for a fault of the caller or of the caller's cloud. Any other exception is a
bug: the door turns it into a 500 with an incident id. A message names the fault, its place and the
remedy, and never holds a secret. `error_name` holds no ids and no names.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Self


class SvcdError(Exception):
    """Root of all errors that the door answers with their own status.

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
        """A copy of the error for an object at `path` of the body: its paths begin there."""
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
    """The shape of the body is wrong. One message reports all faults, one per line."""

    status = 400
    name = "VALIDATION_ERROR"

    @classmethod
    def of(cls, faults: Sequence[str]) -> ValidationError:
        """The error for `faults`, one per line, in the given order."""
        return cls("\n".join(faults))


class InvalidReference(SvcdError):
    """A reference is unknown or unusable, or the object is in use or in the wrong state."""

    status = 400
    name = "INVALID_REFERENCE"


class InvalidData(SvcdError):
    """The body breaks a rule across fields: duplicates, mains and libs, input and output."""

    status = 400
    name = "INVALID_DATA"


class InvalidCredentials(SvcdError):
    """A data source in the object store has no user and password."""

    status = 400
    name = "INVALID_CREDENTIALS"


class BadJobBinary(SvcdError):
    """An upload is empty or badly named, or object store credentials are missing or refused."""

    status = 400
    name = "BAD_JOB_BINARY"


class ImageNotRegistered(SvcdError):
    """The image exists in the cloud but is not registered."""

    status = 400
    name = "IMAGE_NOT_REGISTERED"


class DeletionFailed(SvcdError):
    """Another record refers to the job, binary, internal binary or data source."""

    status = 400
    name = "DELETION_FAILED"


class InvalidComponentCount(SvcdError):
    """The topology has too few or too many instances of a process."""

    status = 400
    name = "INVALID_COMPONENT_COUNT"


class MissingService(SvcdError):
    """The topology lacks a process that another process needs."""

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
    """The request exceeds the quota of the cloud. The message names the need and the rest."""

    status = 400
    name = "QUOTA_ERROR"


class NameTaken(SvcdError):
    """The tenant already has a resource of this kind with the name."""

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
    """The token is missing or refused. The door adds `WWW-Authenticate`."""

    status = 401
    name = "UNAUTHORIZED"


class Forbidden(SvcdError):
    """The token belongs to another tenant, or the cloud forbids the operation to the caller."""

    status = 403
    name = "FORBIDDEN"


class NotFound(SvcdError):
    """The id, name or version in the path is unknown. The message contains "not found"."""

    status = 404
    name = "NOT_FOUND"

    @classmethod
    def of(cls, kind: str, key: str) -> NotFound:
        """The error for a missing record. kind: for example "cluster"; key: its id or name."""
        return cls(f"{kind} {key!r} not found")


class MethodNotAllowed(SvcdError):
    status = 405
    name = "METHOD_NOT_ALLOWED"


class NotAcceptable(SvcdError):
    status = 406
    name = "NOT_ACCEPTABLE"


class RequestTimeout(SvcdError):
    status = 408
    name = "REQUEST_TIMEOUT"


class IdempotencyKeyReused(SvcdError):
    """Another request with the same Idempotency-Key has succeeded within 24 hours."""

    status = 409
    name = "IDEMPOTENCY_KEY_REUSED"


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
    """The service does not take the media type or the Content-Encoding of the body."""

    status = 415
    name = "UNSUPPORTED_MEDIA_TYPE"


class TooManyRequests(SvcdError):
    """The address of the caller asks for more than its share. Has `Retry-After`."""

    status = 429
    name = "TOO_MANY_REQUESTS"

    def __init__(self, message: str, retry_after_s: int = 1) -> None:
        super().__init__(message, {"Retry-After": str(retry_after_s)})


class HeadersTooLarge(SvcdError):
    status = 431
    name = "REQUEST_HEADER_FIELDS_TOO_LARGE"


# ---- 5xx: svcd and the services it calls --------------------------------------------------------


class InternalError(SvcdError):
    """A bug. The message has the incident id of the log. Only the door raises it."""

    status = 500
    name = "INTERNAL_SERVER_ERROR"


class PlatformError(SvcdError):
    """The cloud or the workflow engine answered with an internal fault."""

    status = 502
    name = "PLATFORM_ERROR"


class ServiceUnavailable(SvcdError):
    """The cloud, the engine or the database is unreachable now. Has `Retry-After`."""

    status = 503
    name = "SERVICE_UNAVAILABLE"

    def __init__(self, message: str, retry_after_s: int = 5) -> None:
        super().__init__(message, {"Retry-After": str(retry_after_s)})


class PlatformTimeout(SvcdError):
    """The cloud or the engine did not answer within its time-out."""

    status = 504
    name = "PLATFORM_TIMEOUT"


# ---- for the description of the interface -------------------------------------------------------

RULES: Final = (
    ImageNotRegistered,
    InvalidComponentCount,
    InvalidData,
    InvalidReference,
    MissingService,
    QuotaExceeded,
    ValidationError,
)
"""What the rules of clusters and templates refuse."""
