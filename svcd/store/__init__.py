"""Stores all rows in SQLite or PostgreSQL: one SQL text, two drivers."""
