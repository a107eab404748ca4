"""What is remembered.

checkpoints/   what files held before they were changed, so that every change can be undone
sessions/      conversations, line by line: resumed, searched, exported
"""
