"""The reference interpreter: the definition that everything else is compared with."""
