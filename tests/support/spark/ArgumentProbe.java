package org.svcd.spark;

import java.nio.charset.StandardCharsets;

/** Writes each argument of stdin in the form that Spark gets. */
public final class ArgumentProbe {
  private ArgumentProbe() {}

  public static void main(String[] arguments) throws Exception {
    String all = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
    for (String each : all.split("\u0001", -1)) {
      System.out.print(LaunchArgument.of(each) + "\u0001");
    }
  }
}
