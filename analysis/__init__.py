"""Tables and figures of the papers: their numbers next to ours."""
