"""The MAP engine: a maximum of log p(X, W, theta | Y) with beta integrated out, and what follows from it.

objective      the log density with its effective volume correction, and the gradient
climb          L-BFGS from a point, and the verdict on how it ended
approach       rounds of L-BFGS on an approximation of the objective
search         a maximisation in progress
starts         candidates for X, with gaps (missing cells filled) and matching (kernel matching)
competition    the best of several starts
maximise       the whole of it, as a user calls it
result         what a fit carries
draws          draws around a maximum
states         states in which the chains of the sampler start
"""
