"""The bundled tiny VAE: weights, configuration and tokenizer. To try the tool with, not to train on."""
