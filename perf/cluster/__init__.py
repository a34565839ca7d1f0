"""Running the suite as jobs: site files, schedulers, job directories, watching, merging."""
