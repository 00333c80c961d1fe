package org.svcd.spark;

/** The reason of a failed job, in words for the person who started it. */
final class SparkFailure extends Exception {
  private static final long serialVersionUID = 1L;

  SparkFailure(String text) {
    super(text);
  }

  /** The words alone: Oozie shows them after the name of the main class. */
  @Override
  public String toString() {
    return getMessage();
  }
}
