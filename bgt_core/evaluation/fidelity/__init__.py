"""Generated sentences beside their references: what is generated from what, and what is kept."""
