"""Changes names in compiled Java classes: the text constants of a class file, nothing else.

Note: why Pig is adapted

Pig 0.18.0 is compiled against Avro 1.7, Hadoop 3.5.0 brings Avro 1.11, and both have to live on one
class path. Of all that Pig calls, two members of `Schema.Field` are gone: a constructor and a
getter that spoke Jackson 1's `JsonNode`. Their successors take and return `Object` and are used by
Pig in the same way (a default value is copied from one field to another, or is null), so three
names in three classes are all it takes to have Avro and Trevni storage.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path

_NODE = "Lorg/codehaus/jackson/JsonNode;"
_FIELD = "(Ljava/lang/String;Lorg/apache/avro/Schema;Ljava/lang/String;%s)V"

# class of Pig: text constants and what they become
AVRO_RENAMES: Mapping[str, Mapping[str, str]] = {
    f"org/apache/pig/impl/util/avro/{name}.class": {
        _FIELD % _NODE: _FIELD % "Ljava/lang/Object;",
        f"(){_NODE}": "()Ljava/lang/Object;",
        "defaultValue": "defaultVal",
    }
    for name in ("AvroArrayReader", "AvroStorageSchemaConversionUtilities", "AvroTupleWrapper")
}

# bytes after the tag of each kind of constant (JVM specification 4.4); 1, text, has its own length
_SIZES = {
    3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4,
    15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2,
}  # fmt: skip
_TEXT = 1
_TWO_SLOTS = (5, 6)


def rename_constants(data: bytes, renames: Mapping[str, str]) -> tuple[bytes, int]:
    """The class file with each text constant that equals a key replaced, and how many were.

    Raises: ValueError when `data` is no class file.
    """
    if data[:4] != b"\xca\xfe\xba\xbe":
        raise ValueError("not a class file")
    wanted = {old.encode(): new.encode() for old, new in renames.items()}
    (slots,) = struct.unpack_from(">H", data, 8)
    made, at, slot, count = [data[:10]], 10, 1, 0
    while slot < slots:
        tag = data[at]
        if tag == _TEXT:
            (length,) = struct.unpack_from(">H", data, at + 1)
            text = data[at + 3 : at + 3 + length]
            new = wanted.get(text, text)
            count += new is not text
            made.append(struct.pack(">BH", tag, len(new)) + new)
            at += 3 + length
        elif tag in _SIZES:
            made.append(data[at : at + 1 + _SIZES[tag]])
            at += 1 + _SIZES[tag]
        else:
            raise ValueError(f"constant of unknown kind {tag} at byte {at}")
        slot += 2 if tag in _TWO_SLOTS else 1
    return b"".join(made) + data[at:], count


def adapt_jar(source: Path, target: Path, classes: Mapping[str, Mapping[str, str]]) -> None:
    """Copies a jar with the constants of some of its classes renamed.

    Raises: ValueError when a class is not in the jar or nothing in it had to be renamed: the jar is
    another than the one this was made for.
    """
    left = dict(classes)
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            data = old.read(entry)
            if (renames := left.pop(entry.filename, None)) is not None:
                data, count = rename_constants(data, renames)
                if not count:
                    raise ValueError(f"{source.name}: nothing to rename in {entry.filename}")
            new.writestr(entry, data)
    if left:
        raise ValueError(f"{source.name} has no {', '.join(left)}")
