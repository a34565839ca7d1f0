"""Driver side: start a launch in the stack under test, watch it, end it, and say what happened."""
