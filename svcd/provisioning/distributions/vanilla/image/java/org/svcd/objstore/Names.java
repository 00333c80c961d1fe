package org.svcd.objstore;

import java.util.Arrays;
import java.util.Collection;
import org.apache.hadoop.fs.Path;

/** Between Hadoop's paths and the store's names. Pure. */
final class Names {
  private Names() {}

  /**
   * The container of a URL's authority. {@code data.svc} means the container {@code data} when {@code svc} is one of
   * the suffixes; every other authority is a container as it stands, dots included.
   */
  static String container(String authority, Collection<String> suffixes) {
    for (String suffix : suffixes) {
      if (authority.length() > suffix.length() + 1 && authority.endsWith("." + suffix)) {
        return authority.substring(0, authority.length() - suffix.length() - 1);
      }
    }
    return authority;
  }

  /** The object's name of an absolute path; empty for the root. */
  static String key(Path absolute) {
    String path = absolute.toUri().getPath();
    int from = 0;
    while (from < path.length() && path.charAt(from) == '/') {
      from++;
    }
    return path.substring(from);
  }

  /** The prefix that all names below this one have. */
  static String below(String key) {
    return key.isEmpty() || key.endsWith("/") ? key : key + "/";
  }

  /** The name without slashes at its end. */
  static String trimmed(String key) {
    int end = key.length();
    while (end > 0 && key.charAt(end - 1) == '/') {
      end--;
    }
    return key.substring(0, end);
  }

  /**
   * Whether Hadoop can name this object: its paths know no empty segment and no {@code .} or {@code ..}. Such objects
   * are left out of listings, since their path would mean another object.
   */
  static boolean reachable(String key) {
    return !key.isEmpty()
        && Arrays.stream(key.split("/", -1)).noneMatch(s -> s.isEmpty() || s.equals(".") || s.equals(".."));
  }
}
