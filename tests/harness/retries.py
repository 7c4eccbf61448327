"""An attempt that is repeated is told: a test that passes at the second try is no test that passes.

    RETRIED fault.abuse query-scan: measurement 1 of 3: ['read'] took too long

The line goes to standard output and, since ctest hides the output of tests that pass, is added to the file that
ORRERY_RETRIES names. `make test` names build/retries.txt, and prints it after the tests.
"""

import os

VARIABLE = "ORRERY_RETRIES"


def report(what, why):
    line = f"RETRIED {what}: {' '.join(str(why).split())}"
    print(line, flush=True)
    if path := os.environ.get(VARIABLE):
        # One write to a file opened for appending: lines of tests that run at the same time do not mix.
        with open(path, "a", encoding="utf-8") as file:
            file.write(line + "\n")
