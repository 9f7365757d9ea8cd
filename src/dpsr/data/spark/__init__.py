"""Ratings on Spark: the session, reading, and packing into blocks."""
