"""StreamIt: filters, pipelines, split-joins and feedback loops."""
