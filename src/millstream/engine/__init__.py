"""Running a job batch by batch, whoever launches it: no pyspark here."""
