"""The ground of all tests in Python: one launcher, one signed client, one way to wait.

    server      `orrery serve` as a child process: started, stopped, killed, started again
    wire        the signed client, the resources it makes, and what every response must obey
    program     any other program as a child process, and the lines that it prints
    waiting     wait_until: a condition with a deadline
    proc        memory and processor time of a process
    seeds       ORRERY_SEED, by which every random test is replayed
    retries     the line RETRIED, which every repeated attempt prints

A script puts `tests/` on the path and imports by the package's name, from wherever it is started:

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
    from harness import server, wire  # noqa: E402

`with_server.py` runs any command against a fresh server. `rest.mjs` is the signed client of tests in Node, `src/base/test_seed.h`
has ORRERY_SEED for tests in C++. Standard library only.
"""
