"""Our extension of the paper: order, roles and no language in the semantic latent. `nets` is read without it."""
