package org.svcd.objstore;

import java.io.IOException;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import org.apache.hadoop.conf.Configuration;

/**
 * Who asks, for which project, at which Keystone: everything that decides which token is used.
 *
 * <p>A value: equal credentials share one cached token ({@link Identity#of}). {@code toString} hides the password.
 * Either a user with a password, or an application credential, which has its user and its project.
 *
 * @param authUrl base of Keystone's v3 API, ending in {@code /v3}
 * @param credentialId of the application credential; empty: a user with a password
 * @param expires when the application credential ends, ISO 8601; empty: unknown
 * @param username empty with an application credential
 * @param password the application credential's secret, or the user's password
 * @param userDomain id or name, see {@link Identity}
 * @param project id or name, see {@link Identity}
 * @param region empty: any region
 */
record Credentials(
    String authUrl,
    String credentialId,
    String expires,
    String username,
    String password,
    String userDomain,
    String project,
    String projectDomain,
    String region,
    String endpointInterface) {

  /** The clocks of Keystone and of this machine may differ by this. */
  private static final Duration CLOCKS = Duration.ofSeconds(60);

  /**
   * Reads the credentials for one container: {@code fs.objstore.container.<name>.<key>} first, then
   * {@code fs.objstore.<key>}. Passwords and secrets may lie in a Hadoop credential provider.
   *
   * <p>Where one of the two names an application credential, that is used; but a container's own user goes before the
   * application credential of all containers. Where svcd found that Keystone refuses the account, it writes the reason
   * ({@code refused}) in place of a login.
   */
  static Credentials of(Configuration conf, String container) throws IOException {
    String userDomain = value(conf, container, "user.domain", "default");
    boolean ownUser = !conf.getTrimmed(own(container, "username"), "").isEmpty();
    String common = ownUser ? "" : conf.getTrimmed("fs.objstore.credential.id", "");
    String credentialId = conf.getTrimmed(own(container, "credential.id"), common);
    boolean ownLogin = ownUser || !conf.getTrimmed(own(container, "credential.id"), "").isEmpty();
    String refused = conf.getTrimmed(own(container, "refused"), ownLogin ? "" : value(conf, container, "refused", ""));
    if (!refused.isEmpty()) {
      throw new ObjStoreException(ObjStoreException.Code.UNAUTHORIZED, refused);
    }
    boolean isUser = credentialId.isEmpty();
    return new Credentials(
        authUrl(required(conf, container, "auth.url")),
        credentialId,
        isUser ? "" : value(conf, container, "credential.expires", ""),
        isUser ? required(conf, container, "username") : "",
        password(conf, container, isUser ? "password" : "credential.secret"),
        userDomain,
        required(conf, container, "project"),
        value(conf, container, "project.domain", userDomain),
        value(conf, container, "region", ""),
        value(conf, container, "interface", "public"));
  }

  boolean isApplicationCredential() {
    return !credentialId.isEmpty();
  }

  /** Whether the application credential has ended at {@code now}, or ends within a minute. */
  boolean isExpired(Instant now) {
    try {
      return !expires.isEmpty() && !now.isBefore(Instant.parse(expires).minus(CLOCKS));
    } catch (DateTimeException unknown) {
      return false;
    }
  }

  /** For messages: who, where; never the password. */
  String describe() {
    String who = isApplicationCredential() ? "application credential " + credentialId : "user " + username;
    return who + " of project " + project + " at " + authUrl;
  }

  @Override
  public String toString() {
    return "Credentials[" + describe() + "]";
  }

  private static String authUrl(String configured) {
    String url = configured.trim().replaceAll("/+$", "");
    return url.endsWith("/v3") ? url : url + "/v3";
  }

  private static String own(String container, String key) {
    return "fs.objstore.container." + container + "." + key;
  }

  private static String value(Configuration conf, String container, String key, String fallback) {
    String common = conf.getTrimmed("fs.objstore." + key, "");
    String value = conf.getTrimmed(own(container, key), common);
    return value.isEmpty() ? fallback : value;
  }

  private static String required(Configuration conf, String container, String key) throws IOException {
    String value = value(conf, container, key, "");
    if (value.isEmpty()) {
      throw missing(container, key);
    }
    return value;
  }

  private static String password(Configuration conf, String container, String key) throws IOException {
    char[] found = conf.getPassword(own(container, key));
    if (found == null) {
      found = conf.getPassword("fs.objstore." + key);
    }
    if (found == null || found.length == 0) {
      throw missing(container, key);
    }
    return new String(found);
  }

  private static IOException missing(String container, String key) {
    return new ObjStoreException(
        ObjStoreException.Code.MISCONFIGURED,
        "neither fs.objstore." + key + " nor " + own(container, key) + " is set in the job's configuration");
  }
}
