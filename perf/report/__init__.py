"""What a person sees of a run: progress while it runs, tables of what came out, line profiles, JUnit properties."""
