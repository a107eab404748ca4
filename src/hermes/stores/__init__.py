"""What is remembered: checkpoints of files, so that every change can be undone."""
