"""How far a model is from the optimum, and which columns a pass need not look at."""
