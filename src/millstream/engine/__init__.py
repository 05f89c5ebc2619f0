"""The engines. They share what a job is, and never import each other."""
