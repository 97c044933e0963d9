"""Newton steps of a single output, on a quadratic model that is formed once."""
