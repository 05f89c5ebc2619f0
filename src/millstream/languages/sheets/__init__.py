"""Streaming spreadsheets: workbooks read from `.xlsx` and translated to the calculus."""
