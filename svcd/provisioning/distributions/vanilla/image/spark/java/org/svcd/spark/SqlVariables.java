package org.svcd.spark;

import java.util.Set;
import java.util.TreeSet;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The variables of a statement. Spark would take the empty text for one without a value. It knows nothing of Spark. */
final class SqlVariables {
  /** Spark's own expression, of its class ConfigReader. */
  private static final Pattern VARIABLE = Pattern.compile("\\$\\{(?:(\\w+?):)?(\\S+?)\\}");
  /** With another prefix Spark leaves a variable without a value as it stands. */
  private static final Set<String> PREFIXES = Set.of("spark", "sparkconf", "hivevar", "hiveconf");

  private SqlVariables() {}

  /**
   * The first variable in {@code text} without a value, also in the value of another one; "" when all have one.
   *
   * @param values the value of a name, or null
   */
  static String missing(String text, UnaryOperator<String> values) {
    return missing(text, values, Set.of());
  }

  private static String missing(String text, UnaryOperator<String> values, Set<String> within) {
    Matcher variable = VARIABLE.matcher(text);
    while (variable.find()) {
      String name = variable.group(2);
      boolean isSparks = variable.group(1) == null || PREFIXES.contains(variable.group(1));
      if (!isSparks || within.contains(name)) { // Spark refuses a circle
        continue;
      }
      String value = values.apply(name);
      if (value == null) {
        return variable.group();
      }
      Set<String> deeper = new TreeSet<>(within);
      deeper.add(name);
      String found = missing(value, values, deeper);
      if (!found.isEmpty()) {
        return found + ", in the value of " + variable.group() + ",";
      }
    }
    return "";
  }
}
