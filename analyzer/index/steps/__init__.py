"""Where a run's steps are, and of which kinds."""
