"""Objectives: `(Outputs, step) -> Loss`. They read outputs only and hold no parameters."""
