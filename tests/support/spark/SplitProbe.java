package org.svcd.spark;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Splits the script on stdin: for each statement its line, a tab, and its text with line ends as \n. */
public final class SplitProbe {
  private SplitProbe() {}

  public static void main(String[] arguments) throws Exception {
    String all = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
    for (String script : all.split("\u0001", -1)) {
      List<String> found = new ArrayList<>();
      try {
        for (SqlStatement each : SqlStatement.of(script)) {
          found.add(each.line() + "\t" + each.text().replace("\n", "\\n"));
        }
      } catch (SqlStatement.Unfinished error) {
        found.add(error.getMessage());
      }
      System.out.print(String.join("\u0002", found) + "\u0001");
    }
  }
}
