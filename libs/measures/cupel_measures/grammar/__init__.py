"""The text of measures: syntax, parameters, declarations and bound measures."""
