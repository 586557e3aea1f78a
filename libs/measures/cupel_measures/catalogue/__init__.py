"""All declared measures: parsing by name, reference pages, scale types."""
