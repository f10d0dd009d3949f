"""The Gibbs blocks, one file each, all with the same names.

``step(key, state, data, model, tuning) -> (state, Info)`` draws one block given the others.
``Info`` holds what is only looked at. A block with something to tune also has
``adapt(tuning, info, rate) -> tuning``, which the engine calls during burn-in only.
"""
