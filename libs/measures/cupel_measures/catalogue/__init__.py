"""All declared measures: the parser of their texts and their reference pages."""
