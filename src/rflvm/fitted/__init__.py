"""What a fit says: aligned draws, prediction, diagnostics, saved models, conversion for ArviZ, summaries."""
