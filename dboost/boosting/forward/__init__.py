"""Classical forward-greedy boosting: one hypothesis per round."""
