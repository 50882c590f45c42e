"""The report of a fit, one HTML file: `page` writes it."""
