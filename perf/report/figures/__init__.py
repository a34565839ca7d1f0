"""What a report draws, as plain data: one module a question. Nothing here knows how it is drawn."""
