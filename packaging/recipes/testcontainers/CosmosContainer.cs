// Packages: Testcontainers.CosmosDb 4.10 or newer, Microsoft.Azure.Cosmos.
using DotNet.Testcontainers.Builders;
using Microsoft.Azure.Cosmos;
using Testcontainers.CosmosDb;

// The module, with another image. Until 4.9: new CosmosDbBuilder().WithImage("orrery:0.1.0").
await using var cosmos = new CosmosDbBuilder("orrery:0.1.0").Build();
await cosmos.StartAsync();
using var client = new CosmosClient(cosmos.GetConnectionString(), new CosmosClientOptions
{
    ConnectionMode = ConnectionMode.Gateway,  // direct mode does not exist here
    HttpClientFactory = () => cosmos.HttpClient,
});
await client.CreateDatabaseIfNotExistsAsync("shop");

// Without the module.
const string key = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
await using var container = new ContainerBuilder("orrery:0.1.0")
    .WithPortBinding(8081, assignRandomHostPort: true)
    .WithPortBinding(8080, assignRandomHostPort: true)
    .WithWaitStrategy(Wait.ForUnixContainer().UntilHttpRequestIsSucceeded(request => request.ForPort(8080).ForPath("/ready")))
    .Build();
await container.StartAsync();
using var plain = new CosmosClient(
    $"http://{container.Hostname}:{container.GetMappedPublicPort(8081)}/", key,
    new CosmosClientOptions { ConnectionMode = ConnectionMode.Gateway });
await plain.CreateDatabaseIfNotExistsAsync("shop");
