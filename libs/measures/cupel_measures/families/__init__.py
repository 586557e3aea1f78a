"""The measures, one file per family. Each function declares itself."""
