"""The rows: one SQL text, two drivers."""
