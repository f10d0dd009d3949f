"""The Gibbs sampler: blocks, sweep, chains, run, checkpoints, progress."""
