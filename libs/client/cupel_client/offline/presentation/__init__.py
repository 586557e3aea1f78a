"""Output of the offline commands: tables, JSON, LaTeX and Markdown."""
