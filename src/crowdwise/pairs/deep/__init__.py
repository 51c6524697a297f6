"""Deep generative mixtures of features and same/different answers, in torch. Functions take and return arrays."""
