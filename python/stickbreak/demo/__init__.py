"""The demo, `python -m stickbreak.demo`: a mixture of every 8 x 8 patch of two photographs.

It needs more packages than the rest of stickbreak: ``pip install "stickbreak[demo]"``.
"""
