"""The model of Eq. 5: features, prior over frequencies, joint density, evidence, rows, draws."""
