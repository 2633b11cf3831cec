"""Texts for people: values in messages, the nearest right name, progress, lines of logs."""
