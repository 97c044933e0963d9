"""The scikit-learn shape of dboost: constructors only store, ``fit`` builds the parts and calls one driver."""
