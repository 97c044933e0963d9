"""The inner solves of a round: the objective minimised over fixed rows of W."""
