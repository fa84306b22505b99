"""A sweep for people: as Markdown, as a page, as plots. Pure."""
