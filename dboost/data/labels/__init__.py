"""Labels: distinct values, codes, weights and what is noted of them."""
