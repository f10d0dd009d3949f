"""Tools that know nothing of the model: linear algebra, compilation, HMC, Polya-gamma variates, quadrature."""
