"""Tables in files: JSON, CSV, TSV and Parquet, recognised from their content."""
