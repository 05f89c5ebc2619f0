"""A project that answers while it runs: routes in one table, guarded in one place."""
