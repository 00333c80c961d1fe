package org.svcd.hadoop;

import java.util.Collections;
import java.util.List;
import java.util.Locale;

/**
 * Decides which Host headers the web servers of a machine answer.
 *
 * <p>A web page can point its own name at 127.x (DNS rebinding), and a browser then lets it talk to the pages of
 * machines on this host. Such a request carries the name of that page. So machines with a loopback address (the system
 * property {@code svcd.address}) answer only to localhost, to their address, and to the address that a connection has
 * reached. Without the property every Host is answered.
 */
public final class KnownHosts {
  private static final String OWN = System.getProperty("svcd.address", "");

  private KnownHosts() {}

  /** The reason why a request is refused; null when it may pass. reached: the local address of its connection. */
  public static String refusal(List<String> hosts, String reached) {
    return refusal(OWN, hosts == null ? Collections.emptyList() : hosts, reached);
  }

  static String refusal(String own, List<String> hosts, String reached) {
    if (own.isEmpty()) {
      return null;
    }
    boolean known = !hosts.isEmpty();
    for (String host : hosts) {
      String name = name(host);
      known &= name.equals("localhost") || name.equals(own) || name.equals(reached);
    }
    if (known) {
      return null;
    }
    return "The Host header of this request (" + shown(hosts) + ") is not " + own + ", which is the address of this"
        + " machine, or localhost. svcd refuses other names because a foreign web page can point its own name at this"
        + " machine. Use the address in the URL.\n";
  }

  /** The host of a Host header without its port, in lower case. */
  private static String name(String header) {
    String host = header.trim().toLowerCase(Locale.ROOT);
    if (host.matches(".*:[0-9]*")) {
      host = host.substring(0, host.lastIndexOf(':'));
    }
    return host;
  }

  /** The names for a text: short, and without a character that a browser or a terminal could take for more. */
  private static String shown(List<String> hosts) {
    if (hosts.isEmpty()) {
      return "there is none";
    }
    String text = String.join(", ", hosts).replaceAll("[^A-Za-z0-9.:, _\\[\\]-]", "?");
    return text.length() > 100 ? text.substring(0, 100) + "..." : text;
  }
}
