"""Sections of pages about any kind of answers that has none of its own with the same id."""
