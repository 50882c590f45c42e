"""Pictures of fitted estimators."""
