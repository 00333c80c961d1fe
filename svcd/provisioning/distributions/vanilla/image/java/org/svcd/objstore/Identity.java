package org.svcd.objstore;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A scoped Keystone token and the object store's address, cached for the JVM per credentials. Thread-safe.
 *
 * <p>The token is renewed a minute before its end (a quarter of its life, if that is shorter), and by {@link #renewed}
 * after the store refused it. Swift also answers 401 when its own Keystone does not answer; then the renewal fails, and
 * that error is the one the job shows.
 *
 * <p>Names and ids: a project or domain of 32 hexadecimal digits is an id, {@code default} is the id of the default
 * domain, all else is a name. Source: Identity API v3, "Password authentication with scoped authorization", "Authenticating
 * with an Application Credential".
 */
final class Identity {
  private static final int CACHED = 100;
  private static final Map<Credentials, Identity> CACHE = new LinkedHashMap<>(16, 0.75f, true);
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Duration EARLY = Duration.ofSeconds(60);

  private final Credentials credentials;
  private Session session;
  private Instant renewAt = Instant.MIN;

  private Identity(Credentials credentials) {
    this.credentials = credentials;
  }

  /**
   * What a request needs.
   *
   * @param token secret
   * @param storeUrl the account's URL, without a slash at its end
   */
  record Session(String token, String storeUrl) {
    @Override
    public String toString() {
      return "Session[" + storeUrl + "]";
    }
  }

  /** The one identity of these credentials in this JVM (of the hundred used last). */
  static Identity of(Credentials credentials) {
    synchronized (CACHE) {
      Identity identity = CACHE.computeIfAbsent(credentials, Identity::new);
      if (CACHE.size() > CACHED) {
        CACHE.remove(CACHE.keySet().iterator().next());
      }
      return identity;
    }
  }

  Credentials credentials() {
    return credentials;
  }

  /** A session that is good for the next request, asked from Keystone if need be. */
  synchronized Session session(Http http) throws IOException {
    if (session == null || !Instant.now().isBefore(renewAt)) {
      authenticate(http);
    }
    return session;
  }

  /** A new session in place of the refused one, unless another thread has renewed it meanwhile. */
  synchronized Session renewed(Http http, Session refused) throws IOException {
    if (session == null || session.token().equals(refused.token())) {
      session = null;
      authenticate(http);
    }
    return session;
  }

  private void authenticate(Http http) throws IOException {
    String url = credentials.authUrl() + "/auth/tokens";
    Map<String, String> headers = Map.of("Content-Type", "application/json", "Accept", "application/json");
    Http.Body body = Http.Body.of(question().toString().getBytes(StandardCharsets.UTF_8));
    try (Http.Reply reply = http.exchange(new Http.Request("POST", url, headers, body, 0))) {
      switch (reply.status) {
        case 200, 201 -> accept(reply);
        case 401 -> throw refused();
        case 403 -> throw new ObjStoreException(
            ObjStoreException.Code.FORBIDDEN, "Keystone forbids a token for " + credentials.describe());
        case 404 -> throw credentials.isApplicationCredential() ? refused() : noKeystone();
        default -> throw new ObjStoreException(
            reply.status >= 500 ? ObjStoreException.Code.SERVER_ERROR : ObjStoreException.Code.REFUSED,
            "POST " + url + " was answered " + reply.status + ": " + reply.excerpt());
      }
    }
  }

  /** The failure when Keystone knows no such user or password; a missing application credential is its 404. */
  private ObjStoreException refused() {
    if (!credentials.isApplicationCredential()) {
      return new ObjStoreException(
          ObjStoreException.Code.UNAUTHORIZED,
          "Keystone refused " + credentials.describe() + "; check the credentials of the data source and the project");
    }
    if (credentials.isExpired(Instant.now())) {
      return new ObjStoreException(
          ObjStoreException.Code.EXPIRED, credentials.describe() + " was valid until " + credentials.expires());
    }
    return new ObjStoreException(
        ObjStoreException.Code.UNAUTHORIZED,
        "Keystone refused " + credentials.describe() + "; it was deleted, or its user has lost the project");
  }

  private ObjStoreException noKeystone() {
    return new ObjStoreException(
        ObjStoreException.Code.MISCONFIGURED,
        "no Keystone v3 at " + credentials.authUrl() + " (404); check fs.objstore.auth.url");
  }

  private void accept(Http.Reply reply) throws IOException {
    String token = reply.header("X-Subject-Token");
    JsonNode answer;
    try {
      answer = JSON.readTree(reply.body()).path("token");
    } catch (JsonProcessingException strange) {
      // Jackson quotes the source in its message; the answer of Keystone stays out of logs.
      throw senseless();
    }
    if (token == null || answer.isMissingNode()) {
      throw senseless();
    }
    session = new Session(token, endpoint(answer.path("catalog")));
    renewAt = renewAt(answer.path("expires_at").asText(""), Instant.now());
  }

  /**
   * When to renew a token that ends at {@code expires}; an unreadable time means in five minutes. Keystone leaves the
   * zone out when the application credential ends with the token.
   */
  static Instant renewAt(String expires, Instant now) {
    Instant end;
    try {
      end = Instant.parse(expires.endsWith("Z") ? expires : expires + "Z");
    } catch (DateTimeException unknown) {
      end = now.plusSeconds(360);
    }
    Duration quarter = Duration.between(now, end).dividedBy(4);
    return end.minus(quarter.compareTo(EARLY) < 0 ? quarter : EARLY);
  }

  private String endpoint(JsonNode catalog) throws IOException {
    for (JsonNode service : catalog) {
      if (!"object-store".equals(service.path("type").asText())) {
        continue;
      }
      for (JsonNode endpoint : service.path("endpoints")) {
        boolean region =
            credentials.region().isEmpty()
                || credentials.region().equals(endpoint.path("region_id").asText())
                || credentials.region().equals(endpoint.path("region").asText());
        if (region && credentials.endpointInterface().equals(endpoint.path("interface").asText())) {
          return endpoint.path("url").asText().replaceAll("/+$", "");
        }
      }
    }
    throw new ObjStoreException(
        ObjStoreException.Code.MISCONFIGURED,
        "the catalog of Keystone has no object-store endpoint with interface " + credentials.endpointInterface()
            + (credentials.region().isEmpty() ? "" : " in region " + credentials.region())
            + " for " + credentials.describe() + "; check fs.objstore.region and fs.objstore.interface");
  }

  private ObjStoreException senseless() {
    return new ObjStoreException(
        ObjStoreException.Code.SERVER_ERROR, credentials.authUrl() + " gave an answer that is not a Keystone token");
  }

  private ObjectNode question() {
    ObjectNode root = JSON.createObjectNode();
    ObjectNode auth = root.putObject("auth");
    ObjectNode identity = auth.putObject("identity");
    if (credentials.isApplicationCredential()) { // its token has the credential's project, and takes no scope
      identity.putArray("methods").add("application_credential");
      identity
          .putObject("application_credential")
          .put("id", credentials.credentialId())
          .put("secret", credentials.password());
      return root;
    }
    identity.putArray("methods").add("password");
    ObjectNode user = identity.putObject("password").putObject("user");
    user.put("name", credentials.username()).put("password", credentials.password());
    user.set("domain", domain(credentials.userDomain()));
    ObjectNode project = auth.putObject("scope").putObject("project");
    if (isId(credentials.project())) {
      project.put("id", credentials.project());
    } else {
      project.put("name", credentials.project());
      project.set("domain", domain(credentials.projectDomain()));
    }
    return root;
  }

  private static ObjectNode domain(String domain) {
    boolean id = "default".equals(domain) || isId(domain);
    return JSON.createObjectNode().put(id ? "id" : "name", domain);
  }

  private static boolean isId(String text) {
    return text.matches("[0-9a-f]{32}");
  }
}
