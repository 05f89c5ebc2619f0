"""Places that are no files here: object stores, Kafka, HTTP. One module per kind."""
