"""What the objstore tests need: a Java probe, and a small store that misbehaves on request."""
