"""The npz format of models and checkpoints, and trees of arrays in it."""
