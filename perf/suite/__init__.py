"""The pytest side: options, what can run here, measuring in rounds, judging, outcomes and exit status."""
