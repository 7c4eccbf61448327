"""ORRERY_SEED replays every random test.

    ORRERY_SEED=42 ctest -R fault.crash        the choices of the run that printed ORRERY_SEED=42

A test asks once, with the value of its --seed option where it has one, which wins over the variable. Without either the
seed is drawn. It is printed in any case, so that the log of a failure shows it.
"""

import os
import random

VARIABLE = "ORRERY_SEED"
SEED_MAX = 1 << 32


def seed(given=None):
    """The seed of this run, which is printed. Generators are made of it: random.Random(seed) where one thread draws,
    random.Random(f"{seed}/{name}") where several do, whose order nobody knows."""
    if given is not None:
        value = given
    elif os.environ.get(VARIABLE):
        value = int(os.environ[VARIABLE])
    else:
        value = random.SystemRandom().randrange(SEED_MAX)
    print(f"{VARIABLE}={value}", flush=True)
    return value
