"""The engine for those who outgrow one machine."""
