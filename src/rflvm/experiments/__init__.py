"""The experiments of the paper (section 3 and appendix A), each from one command: ``rflvm reproduce``."""
