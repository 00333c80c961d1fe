"""The interface, sentence by sentence, as rows that run against any target."""
