"""Writing references: A/A launches of a system, their spread, and the files of ``perf/references``."""
