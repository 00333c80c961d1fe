package org.svcd.spark;

import java.nio.charset.StandardCharsets;

/** The missing variable of each text on stdin; A has the value 1, B ${A}, C ${X}, D ${D}. */
public final class VariablesProbe {
  private VariablesProbe() {}

  public static void main(String[] arguments) throws Exception {
    String all = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
    for (String text : all.split("\u0001", -1)) {
      System.out.print(SqlVariables.missing(text, VariablesProbe::value) + "\u0001");
    }
  }

  private static String value(String name) {
    return switch (name) {
      case "A" -> "1";
      case "B" -> "${A}";
      case "C" -> "${X}";
      case "D" -> "${D}";
      default -> null;
    };
  }
}
