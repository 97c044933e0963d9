"""Upper bounds of the loss after a change of W, tight at no change; see the two modules."""
