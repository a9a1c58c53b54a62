"""The VoxCPM AudioVAE, V1 and V2: encoder, decoder, checkpoint folder."""
