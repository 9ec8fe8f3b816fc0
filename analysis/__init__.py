"""Tables and figures of the papers, with the published numbers next to ours."""
