"""Our own AudioVAE of the VoxCPM family, V1 and V2: configuration, checkpoint, encoder, decoder.

config.py, shapes.py, receptive_field.py and checkpoint.py know the network's structure without torch, so the parent
process refuses a wrong checkpoint before a worker starts; layers.py, encoder.py, decoder.py and weights.py compute.
"""
