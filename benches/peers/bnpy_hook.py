"""bnpy imports this by its path and calls it after every pass ("lap"); `after` is set by run_bnpy.py."""

after = None


def onLapComplete(lapFrac, hmodel, **variables):
    # The state before the first pass is lap 0. The full schedule and the memoized one name their loss differently.
    if lapFrac > 0:
        after(hmodel, variables["cur_loss"] if "cur_loss" in variables else variables["loss"])
