"""Tables and figures of the papers: their numbers beside ours."""
