"""Models: `Batch -> Outputs`. No losses, schedules or devices here."""
