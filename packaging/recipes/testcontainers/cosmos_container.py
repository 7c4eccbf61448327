"""Packages: testcontainers 4.13 or newer, azure-cosmos.

Only without the module for Cosmos DB: that waits for a line in the log of the older emulator and copies a file out of its
container, neither of which can be replaced from outside.
"""

from azure.cosmos import CosmosClient
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import HttpWaitStrategy

KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

container = DockerContainer("orrery:0.1.0").with_exposed_ports(8081, 8080)
with container.waiting_for(HttpWaitStrategy(8080, "/ready").for_status_code(200)):
    endpoint = f"http://{container.get_container_host_ip()}:{container.get_exposed_port(8081)}/"
    CosmosClient(endpoint, KEY).create_database_if_not_exists("shop")
