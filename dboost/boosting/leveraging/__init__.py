"""Leveraging: a learner names a hypothesis in every round."""
