"""Deep generative mixtures with same/different answers, in torch: arrays in, arrays out."""
