"""Which projection suits this data: `run` holds the public function."""
