package org.svcd.spark;

/**
 * An argument of a program in the form from which the driver's container makes the same text.
 *
 * <p>Spark puts the argument between ' and escapes $, " and ' in it. YARN takes <code>{{</code>, <code>}}</code> and
 * {@code <CPS>} for its own, and puts the whole command between ", where bash reads the backslash and the backtick. Two
 * backticks run an empty command: they keep apart what YARN would take.
 */
final class LaunchArgument {
  private LaunchArgument() {}

  static String of(String text) {
    return text.replace("\\", "\\\\")
        .replace("`", "\\`")
        .replaceAll("\\{(?=\\{)|\\}(?=\\})|<(?=CPS>)", "$0``");
  }
}
