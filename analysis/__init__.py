"""Reproduce the tables and figures of the papers, and show the published numbers beside ours."""
