// Packages: testcontainers, @testcontainers/azure-cosmosdb-emulator, @azure/cosmos.
import { CosmosClient } from "@azure/cosmos";
import { AzureCosmosDbEmulatorContainer } from "@testcontainers/azure-cosmosdb-emulator";
import { GenericContainer, Wait } from "testcontainers";

// The module, with another image.
const cosmos = await new AzureCosmosDbEmulatorContainer("orrery:0.1.0").start();
await new CosmosClient(cosmos.getConnectionUri()).databases.createIfNotExists({ id: "shop" });
await cosmos.stop();

// Without the module.
const key = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const container = await new GenericContainer("orrery:0.1.0")
  .withExposedPorts(8081, 8080)
  .withWaitStrategy(Wait.forHttp("/ready", 8080))
  .start();
const endpoint = `http://${container.getHost()}:${container.getMappedPort(8081)}/`;
await new CosmosClient({ endpoint, key }).databases.createIfNotExists({ id: "shop" });
await container.stop();
