"""The MAP engine: objective, climb, starts, their competition, result and draws around it."""
