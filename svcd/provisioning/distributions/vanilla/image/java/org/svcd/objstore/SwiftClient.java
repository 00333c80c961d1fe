package org.svcd.objstore;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.commons.codec.digest.DigestUtils;

/**
 * The object operations of Swift that the file system needs, on one account. Thread-safe.
 *
 * <p>Decides nothing about directories and paths. Each call is one request (with repeated tries, see {@link Http}), and
 * one more with a new token when the store refuses the old one. Source: OpenStack Object Storage API v1, with the
 * sections on large objects.
 */
final class SwiftClient {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final long COPIED_BYTES_PER_MS = 4_000;

  private final Http http;
  private final Identity identity;
  private Boolean staticLargeObjects;

  SwiftClient(Http http, Identity identity) {
    this.http = http;
    this.identity = identity;
  }

  /**
   * One page of a listing.
   *
   * @param subdirectories names under the prefix up to and with the next slash
   * @param last the marker for the next page; null when this page is empty, hence the last
   */
  record Page(List<StoredObject> objects, List<String> subdirectories, String last) {}

  /** One uploaded segment. */
  record Segment(String container, String key, String md5, long bytes) {}

  /** The object, or null when there is none (or no container). */
  StoredObject head(String container, String key) throws IOException {
    try (Http.Reply reply = call("HEAD", path(container, key), "", Map.of(), null, 0)) {
      if (reply.status == 404) {
        return null;
      }
      accept(reply, "HEAD", container, key);
      String type = reply.header("Content-Type", "");
      String manifest = reply.header("X-Object-Manifest", "");
      StoredObject.Kind kind =
          "true".equalsIgnoreCase(reply.header("X-Static-Large-Object", "").trim())
              ? StoredObject.Kind.STATIC
              : manifest.isEmpty() ? StoredObject.Kind.PLAIN : StoredObject.Kind.DYNAMIC;
      return new StoredObject(
          key,
          Math.max(0, reply.contentLength()),
          modified(reply),
          StoredObject.marksDirectory(key, type),
          kind,
          manifest,
          type,
          unquoted(reply.header("ETag", "")));
    }
  }

  /**
   * The bytes from {@code from} to {@code to} (not included). The caller closes the reply, whose body may be longer
   * when the store ignores the range of a read from the beginning.
   *
   * @throws java.io.FileNotFoundException there is no such object
   */
  Http.Reply get(String container, String key, long from, long to) throws IOException {
    Map<String, String> headers = Map.of("Range", "bytes=" + from + "-" + (to - 1));
    Http.Reply reply = call("GET", path(container, key), "", headers, null, 0);
    boolean whole = reply.status == 200 && from == 0;
    if (whole || reply.status == 206) {
      return reply;
    }
    try (reply) {
      accept(reply, "GET", container, key);
      throw new ObjStoreException(
          ObjStoreException.Code.SERVER_ERROR,
          "GET " + url(container, key) + " ignored the range and was answered " + reply.status);
    }
  }

  /**
   * Stores an object.
   *
   * @param md5 hexadecimal, checked by the store; null: not known
   * @param onlyNew refuse to replace
   * @return false when {@code onlyNew} and the object exists
   */
  boolean put(String container, String key, Http.Body body, String type, String md5, boolean onlyNew)
      throws IOException {
    Map<String, String> headers = new HashMap<>();
    headers.put("Content-Type", type);
    if (md5 != null) {
      headers.put("ETag", md5);
    }
    if (onlyNew) {
      headers.put("If-None-Match", "*");
    }
    return stored(call("PUT", path(container, key), "", headers, body, 0), container, key, onlyNew, md5);
  }

  /** Makes segments one static large object. Returns as {@link #put}. */
  boolean putStatic(String container, String key, List<Segment> segments, boolean onlyNew) throws IOException {
    List<Map<String, Object>> manifest = new ArrayList<>();
    for (Segment s : segments) {
      manifest.add(Map.of("path", "/" + s.container() + "/" + s.key(), "etag", s.md5(), "size_bytes", s.bytes()));
    }
    Map<String, String> headers = new HashMap<>();
    headers.put("Content-Type", "application/octet-stream");
    if (onlyNew) {
      headers.put("If-None-Match", "*");
    }
    Http.Body body = Http.Body.of(JSON.writeValueAsBytes(manifest));
    long patience = 200L * segments.size();
    return stored(
        call("PUT", path(container, key), "multipart-manifest=put", headers, body, patience),
        container,
        key,
        onlyNew,
        etag(segments));
  }

  /**
   * Makes a dynamic large object.
   *
   * @param manifest container and prefix, percent-encoded
   */
  boolean putDynamic(String container, String key, String manifest, String type, boolean onlyNew) throws IOException {
    Map<String, String> headers = new HashMap<>();
    headers.put("Content-Type", type);
    headers.put("X-Object-Manifest", manifest);
    if (onlyNew) {
      headers.put("If-None-Match", "*");
    }
    return stored(
        call("PUT", path(container, key), "", headers, Http.Body.of(new byte[0]), 0), container, key, onlyNew, null);
  }

  /**
   * Copies inside the store. Of a large object the manifest is copied: both names then share the segments, and the
   * source has to go with {@link #deletePlain}.
   */
  void copy(String container, StoredObject source, String target) throws IOException {
    switch (source.kind()) {
      case DYNAMIC -> putDynamic(container, target, source.manifest(), source.contentType(), false);
      case STATIC -> copy(container, source, target, "multipart-manifest=get");
      case PLAIN, UNKNOWN -> copy(container, source, target, "");
    }
  }

  private void copy(String container, StoredObject source, String target, String query) throws IOException {
    Map<String, String> headers = new HashMap<>();
    headers.put("X-Copy-From", "/" + Http.quote(container) + "/" + Http.quote(source.key()));
    long patience = source.bytes() / COPIED_BYTES_PER_MS;
    Http.Body empty = Http.Body.of(new byte[0]);
    try (Http.Reply reply = call("PUT", path(container, target), query, headers, empty, patience)) {
      if (reply.status == 404) {
        throw ObjStoreException.notFound(url(container, source.key()) + " to be copied does not exist");
      }
      accept(reply, "copy to", container, target);
    }
  }

  /** Deletes an object alone, of a large one only the manifest. False: it was not there. */
  boolean deletePlain(String container, String key) throws IOException {
    try (Http.Reply reply = call("DELETE", path(container, key), "", Map.of(), null, 0)) {
      if (reply.status == 404) {
        return false;
      }
      accept(reply, "DELETE", container, key);
      return true;
    }
  }

  /**
   * Deletes an object with the segments of a large one.
   *
   * @param object from {@link #head}, so that its kind is known
   */
  boolean deleteWhole(String container, StoredObject object) throws IOException {
    if (object.kind() == StoredObject.Kind.STATIC) {
      return deleteStatic(container, object);
    }
    if (object.kind() == StoredObject.Kind.DYNAMIC) {
      deleteDynamic(object.manifest());
    }
    return deletePlain(container, object.key());
  }

  private boolean deleteStatic(String container, StoredObject object) throws IOException {
    Map<String, String> headers = Map.of("Accept", "application/json");
    String path = path(container, object.key());
    try (Http.Reply reply = call("DELETE", path, "multipart-manifest=delete", headers, null, 60_000)) {
      if (reply.status == 404) {
        return false;
      }
      accept(reply, "DELETE", container, object.key());
      JsonNode answer = json(reply, "DELETE " + url(container, object.key()));
      if (!answer.path("Errors").isEmpty()) {
        throw new ObjStoreException(
            ObjStoreException.Code.REFUSED,
            "the segments of " + url(container, object.key()) + " could not all be deleted: "
                + answer.path("Response Status").asText() + ", first " + answer.path("Errors").path(0));
      }
      return true;
    }
  }

  /** Segments that lie among ordinary objects may be somebody's data that was only joined: they stay. */
  private void deleteDynamic(String manifest) throws IOException {
    String plain = URLDecoder.decode(manifest.replace("+", "%2B"), StandardCharsets.UTF_8);
    int slash = plain.indexOf('/');
    if (slash <= 0 || slash == plain.length() - 1) {
      return;
    }
    String container = plain.substring(0, slash);
    if (!container.endsWith("_segments")) {
      return;
    }
    String prefix = plain.substring(slash + 1);
    Page page = list(container, prefix, "", false, 0);
    while (page.last() != null) {
      for (StoredObject segment : page.objects()) {
        deletePlain(container, segment.key());
      }
      page = list(container, prefix, page.last(), false, 0);
    }
  }

  /**
   * One page of the names that begin with {@code prefix} and follow {@code marker}, in the store's order.
   *
   * @param grouped names with a further slash come once, as subdirectories
   * @param limit at most so many names; 0: as many as the store gives in a page
   * @throws java.io.FileNotFoundException there is no such container
   */
  Page list(String container, String prefix, String marker, boolean grouped, int limit) throws IOException {
    StringBuilder query = new StringBuilder("format=json");
    if (grouped) {
      query.append("&delimiter=%2F");
    }
    if (!prefix.isEmpty()) {
      query.append("&prefix=").append(Http.quoteValue(prefix));
    }
    if (!marker.isEmpty()) {
      query.append("&marker=").append(Http.quoteValue(marker));
    }
    if (limit > 0) {
      query.append("&limit=").append(limit);
    }
    try (Http.Reply reply = call("GET", Http.quote(container), query.toString(), Map.of(), null, 0)) {
      if (reply.status == 404) {
        throw noContainer(container);
      }
      if (reply.status == 204) {
        return new Page(List.of(), List.of(), null);
      }
      accept(reply, "GET", container, "");
      return page(json(reply, "GET " + url(container, "")));
    }
  }

  /** Whether the container exists. */
  boolean containerExists(String container) throws IOException {
    try (Http.Reply reply = call("HEAD", Http.quote(container), "", Map.of(), null, 0)) {
      if (reply.status == 404) {
        return false;
      }
      accept(reply, "HEAD", container, "");
      return true;
    }
  }

  /** Makes the container; nothing happens when it exists. */
  void createContainer(String container) throws IOException {
    try (Http.Reply reply = call("PUT", Http.quote(container), "", Map.of(), Http.Body.of(new byte[0]), 0)) {
      accept(reply, "PUT", container, "");
    }
  }

  /**
   * Whether the store says in {@code /info} that it has static large objects. Asked once; a store that does not tell
   * counts as one without.
   */
  synchronized boolean hasStaticLargeObjects() throws IOException {
    if (staticLargeObjects == null) {
      String account = identity.session(http).storeUrl();
      int version = account.lastIndexOf("/v1");
      String info = (version < 0 ? account : account.substring(0, version)) + "/info";
      try (Http.Reply reply = http.exchange(new Http.Request("GET", info, Map.of(), null, 0))) {
        staticLargeObjects = reply.status == 200 && JSON.readTree(reply.body()).has("slo");
      } catch (JsonProcessingException notTold) {
        staticLargeObjects = false;
      }
    }
    return staticLargeObjects;
  }

  FileNotFoundException noContainer(String container) {
    return ObjStoreException.notFound(
        "the container " + container + " does not exist, as " + identity.credentials().describe() + " sees it");
  }

  /** For messages. */
  String url(String container, String key) {
    return "objstore://" + container + "/" + key;
  }

  private Http.Reply call(
      String method, String path, String query, Map<String, String> headers, Http.Body body, long patienceMs)
      throws IOException {
    Identity.Session session = identity.session(http);
    Http.Reply reply = http.exchange(request(session, method, path, query, headers, body, patienceMs));
    if (reply.status != 401) {
      return reply;
    }
    reply.close();
    Identity.Session renewed = identity.renewed(http, session);
    return http.exchange(request(renewed, method, path, query, headers, body, patienceMs));
  }

  private static Http.Request request(
      Identity.Session session,
      String method,
      String path,
      String query,
      Map<String, String> headers,
      Http.Body body,
      long patienceMs) {
    Map<String, String> all = new HashMap<>(headers);
    all.put("X-Auth-Token", session.token());
    String url = session.storeUrl() + "/" + path + (query.isEmpty() ? "" : "?" + query);
    return new Http.Request(method, url, all, body, patienceMs);
  }

  /**
   * Judges the answer to a PUT.
   *
   * @param etag of what was sent: tells "somebody else's object" from "ours, and the first answer was lost"
   */
  private boolean stored(Http.Reply reply, String container, String key, boolean onlyNew, String etag)
      throws IOException {
    try (reply) {
      if (onlyNew && reply.status == 412) {
        StoredObject there = reply.repeated ? head(container, key) : null;
        return there != null && there.etag().equals(etag);
      }
      if (reply.status == 404) {
        throw noContainer(container);
      }
      accept(reply, "PUT", container, key);
      return true;
    }
  }

  /** Returns for 2xx, else throws what the status means. */
  private void accept(Http.Reply reply, String what, String container, String key) throws IOException {
    int status = reply.status;
    if (status >= 200 && status < 300) {
      return;
    }
    String where = url(container, key);
    String who = identity.credentials().describe();
    switch (status) {
      case 401 -> throw new ObjStoreException(
          ObjStoreException.Code.UNAUTHORIZED,
          "the object store refused " + who + " (" + what + " " + where + "); check the data source's credentials");
      case 403 -> throw new ObjStoreException(
          ObjStoreException.Code.FORBIDDEN,
          who + " may not " + what + " " + where + "; check the roles of the user and the rights of the container");
      case 404 -> throw ObjStoreException.notFound(where + " does not exist");
      default -> throw new ObjStoreException(
          status < 500 ? ObjStoreException.Code.REFUSED : ObjStoreException.Code.SERVER_ERROR,
          what + " " + where + " was answered " + status + ": " + reply.excerpt());
    }
  }

  /** The ETag of a static large object: the digest of its segments' digests. Source: Swift, "Static Large Objects". */
  private static String etag(List<Segment> segments) {
    StringBuilder all = new StringBuilder();
    segments.forEach(segment -> all.append(segment.md5()));
    return DigestUtils.md5Hex(all.toString());
  }

  static String unquoted(String etag) {
    return etag.replace("\"", "");
  }

  private static Page page(JsonNode entries) {
    List<StoredObject> objects = new ArrayList<>();
    List<String> subdirectories = new ArrayList<>();
    String last = null;
    for (JsonNode entry : entries) {
      if (entry.has("subdir")) {
        last = entry.get("subdir").asText();
        subdirectories.add(last);
        continue;
      }
      last = entry.path("name").asText();
      String type = entry.path("content_type").asText("");
      objects.add(
          new StoredObject(
              last,
              entry.path("bytes").asLong(),
              listedTime(entry.path("last_modified").asText("")),
              StoredObject.marksDirectory(last, type),
              entry.has("slo_etag") ? StoredObject.Kind.STATIC : StoredObject.Kind.UNKNOWN,
              "",
              type,
              entry.path("hash").asText("")));
    }
    return new Page(objects, subdirectories, last);
  }

  private JsonNode json(Http.Reply reply, String what) throws IOException {
    try {
      JsonNode parsed = JSON.readTree(reply.body());
      if (parsed != null) {
        return parsed;
      }
    } catch (JsonProcessingException broken) {
      // falls through: same answer as for an empty body
    }
    throw new ObjStoreException(ObjStoreException.Code.SERVER_ERROR, what + " was answered with something not JSON");
  }

  private static long modified(Http.Reply reply) {
    try {
      String exact = reply.header("X-Timestamp");
      if (exact != null) {
        return (long) (Double.parseDouble(exact) * 1_000);
      }
      String date = reply.header("Last-Modified", "");
      return ZonedDateTime.parse(date, DateTimeFormatter.RFC_1123_DATE_TIME).toInstant().toEpochMilli();
    } catch (NumberFormatException | DateTimeException unknown) {
      return 0;
    }
  }

  private static long listedTime(String text) {
    try {
      return LocalDateTime.parse(text.replaceAll("Z$", "")).toInstant(ZoneOffset.UTC).toEpochMilli();
    } catch (DateTimeException unknown) {
      return 0;
    }
  }

  private static String path(String container, String key) {
    return Http.quote(container) + "/" + Http.quote(key);
  }
}
