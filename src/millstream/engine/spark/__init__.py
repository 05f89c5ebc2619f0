"""The Spark engine, the only package that may import pyspark."""
