"""What is decided for DisaggregatedSets: revisions, coordinated rollouts, scaling, slices and status. Pure."""
