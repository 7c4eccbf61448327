"""Contract tests over raw HTTP, for any endpoint.

    pytest tests/contract                                   starts build/orrery (or $ORRERY_BINARY) by itself
    pytest tests/contract --endpoint https://host:8081/     speaks to a server that runs already
                          --key BASE64                      its key, if it is not the well-known one

Tests that need a server with options of their own are skipped when an endpoint is given.
"""
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import server as launcher, wire  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--endpoint", default=os.environ.get("ORRERY_ENDPOINT"),
                     help="URL of a running server; without it the tests start one")
    parser.addoption("--key", default=wire.WELL_KNOWN_KEY, help="its primary key")


@pytest.fixture(scope="session")
def endpoint(request):
    url = request.config.getoption("--endpoint")
    if url:
        yield wire.Endpoint(url, request.config.getoption("--key"))
        return
    # A page on a busy machine, or under a sanitizer, has the time that it needs: tests of that limit start their own.
    started = launcher.started("--page-timeout-ms", 60_000)
    yield started.endpoint
    started.stop()


@pytest.fixture
def server(request):
    """server(*options) starts a server; it is stopped, with exit code 0, at the end of the test."""
    if request.config.getoption("--endpoint"):
        pytest.skip("needs a server with options of its own")
    started = []

    def start(*options, **settings):
        started.append(launcher.started(*options, **settings))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def client(endpoint):
    with wire.Client(endpoint) as client:
        yield client
    assert not client.breaches, "\n".join(client.breaches)


@pytest.fixture
def db(client):
    return client.create_database()


@pytest.fixture
def container(db):
    """One range, key /pk, hash version 2."""
    return db.create_container()


@pytest.fixture(scope="module")
def module_client(endpoint):
    """For containers that the tests of a file share because they are costly, and only read from."""
    with wire.Client(endpoint) as client:
        yield client
    assert not client.breaches, "\n".join(client.breaches)
