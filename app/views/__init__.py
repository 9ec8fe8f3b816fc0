"""One file a page: a `page()` each, no torch, no maths."""
