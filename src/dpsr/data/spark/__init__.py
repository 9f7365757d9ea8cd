"""Ratings on Spark: the session, reading, and packing into blocks."""

from dpsr.data.spark.frame import spark_table

__all__ = ["spark_table"]
