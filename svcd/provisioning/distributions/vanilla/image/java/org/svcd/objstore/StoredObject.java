package org.svcd.objstore;

/**
 * What the store tells about one object, by HEAD or in a listing.
 *
 * @param key name in the container, without a slash at its beginning
 * @param bytes of a large object: of all segments together (a listing tells 0 for a dynamic one)
 * @param modifiedMs milliseconds since 1970
 * @param directory a marker object: no content, stands for a directory
 * @param kind which sort of object; a listing cannot tell, there it is {@link Kind#UNKNOWN}
 * @param manifest of a dynamic large object: container and prefix of its segments, percent-encoded; else empty
 * @param contentType as stored
 * @param etag without quotes; of a plain object the MD5 of its bytes
 */
record StoredObject(
    String key, long bytes, long modifiedMs, boolean directory, Kind kind, String manifest, String contentType,
    String etag) {

  static final String DIRECTORY_TYPE = "application/directory";

  /** Plain object, static or dynamic large object (Swift's SLO and DLO). */
  enum Kind {
    PLAIN,
    STATIC,
    DYNAMIC,
    UNKNOWN
  }

  /** Whether this is how a directory is marked: by its type, or by a name that ends with a slash. */
  static boolean marksDirectory(String key, String contentType) {
    return key.endsWith("/") || contentType.split(";")[0].trim().equalsIgnoreCase(DIRECTORY_TYPE);
  }
}
