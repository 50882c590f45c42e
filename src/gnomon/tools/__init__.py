"""What a person touches: comparison, model files, report, command line."""
