"""Newton steps: a block of rows at once, with the curvature of the loss."""
