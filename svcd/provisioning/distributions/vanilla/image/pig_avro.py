"""Makes the image's jar of Pig from the released jar, with three names in three classes replaced.

Pig 0.18.0 is compiled against Avro 1.7, Hadoop 3.5.0 brings Avro 1.11, and both have to live on one
class path. Of all that Pig calls, two members of `Schema.Field` are gone: a constructor and a
getter that spoke Jackson 1's `JsonNode`. Their successors take and return `Object` and are used by
Pig in the same way (a default value is copied from one field to another, or is null), so three
names in three classes are all it takes to have Avro and Trevni storage.

The recipe has the digest of this jar, so its bytes are known. A name is replaced where it is in the
form of a text constant (a tag, its length, its letters: JVM specification 4.4.7).
"""

from __future__ import annotations

import zipfile
from pathlib import Path

_NODE = "Lorg/codehaus/jackson/JsonNode;"
_OBJECT = "Ljava/lang/Object;"
_FIELD = "(Ljava/lang/String;Lorg/apache/avro/Schema;Ljava/lang/String;%s)V"

NAMES = (
    (_FIELD % _NODE, _FIELD % _OBJECT),
    (f"(){_NODE}", f"(){_OBJECT}"),
    ("defaultValue", "defaultVal"),
)
"""Names in the classes, and their successors."""
CLASSES = frozenset(
    f"org/apache/pig/impl/util/avro/{name}.class"
    for name in ("AvroArrayReader", "AvroStorageSchemaConversionUtilities", "AvroTupleWrapper")
)


def adapt_jar(source: Path, target: Path) -> None:
    """Copy a jar, with the names in three of its classes replaced.

    Raises: ValueError for another jar than that of Pig 0.18.0: it lacks a class, or a class has
    none of the names.
    """
    left = set(CLASSES)
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename in CLASSES and (adapted := adapted_class(data)) != data:
                data = adapted
                left.remove(entry.filename)
            new.writestr(entry, data)
    if left:
        raise ValueError(f"{source.name} has no name to replace in {', '.join(sorted(left))}")


def adapted_class(data: bytes) -> bytes:
    """A class file with the names replaced."""
    for name, successor in NAMES:
        data = data.replace(_constant(name), _constant(successor))
    return data


def _constant(text: str) -> bytes:
    return b"\x01" + len(text).to_bytes(2, "big") + text.encode()
