package org.svcd.objstore;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;

/**
 * Who asks, for which project, at which Keystone: everything that decides which token is used.
 *
 * <p>A value: equal credentials share one cached token ({@link Identity#of}). {@code toString} hides the password.
 *
 * @param authUrl base of Keystone's v3 API, ending in {@code /v3}
 * @param userDomain id or name, see {@link Identity}
 * @param project id or name, see {@link Identity}
 * @param region empty: any region
 */
record Credentials(
    String authUrl,
    String username,
    String password,
    String userDomain,
    String project,
    String projectDomain,
    String region,
    String endpointInterface) {

  /**
   * Reads the credentials for one container: {@code fs.objstore.container.<name>.<key>} first, then
   * {@code fs.objstore.<key>}. Passwords may lie in a Hadoop credential provider.
   */
  static Credentials of(Configuration conf, String container) throws IOException {
    String userDomain = value(conf, container, "user.domain", "default");
    return new Credentials(
        authUrl(required(conf, container, "auth.url")),
        required(conf, container, "username"),
        password(conf, container),
        userDomain,
        required(conf, container, "project"),
        value(conf, container, "project.domain", userDomain),
        value(conf, container, "region", ""),
        value(conf, container, "interface", "public"));
  }

  /** For messages: who, where; never the password. */
  String describe() {
    return "user " + username + " of project " + project + " at " + authUrl;
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

  private static String password(Configuration conf, String container) throws IOException {
    char[] found = conf.getPassword(own(container, "password"));
    if (found == null) {
      found = conf.getPassword("fs.objstore.password");
    }
    if (found == null || found.length == 0) {
      throw missing(container, "password");
    }
    return new String(found);
  }

  private static IOException missing(String container, String key) {
    return new ObjStoreException(
        ObjStoreException.Code.MISCONFIGURED,
        "neither fs.objstore." + key + " nor " + own(container, key) + " is set in the job's configuration");
  }
}
