"""What is told to people: values in messages, the nearest right name, progress, lines of logs."""
