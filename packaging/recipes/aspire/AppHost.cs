// Packages: Aspire.Hosting.AppHost, Aspire.Hosting.Azure.CosmosDB.
#pragma warning disable ASPIRECOSMOSDB001 // RunAsPreviewEmulator is marked as experimental
var builder = DistributedApplication.CreateBuilder(args);

// The integration for Cosmos DB, with another image: it waits for http://…:8080/ready, as it does with the vendor's.
// The registry is taken away, since the image was loaded from a file.
var cosmos = builder.AddAzureCosmosDB("cosmos").RunAsPreviewEmulator(emulator => emulator
    .WithImage("orrery", "0.1.0")
    .WithImageRegistry(null)
    .WithDataVolume()); // /data
cosmos.AddCosmosDatabase("shop").AddContainer("orders", "/customer");

// Or as a container like any other, with a connection string of your own making.
var plain = builder.AddContainer("plain-cosmos", "orrery", "0.1.0")
    .WithHttpEndpoint(targetPort: 8081, name: "api")
    .WithHttpEndpoint(targetPort: 8080, name: "health")
    .WithHttpHealthCheck("/ready", endpointName: "health");

builder.AddProject<Projects.YourProgram>("program")
    .WithReference(cosmos).WaitFor(cosmos)
    .WithEnvironment("COSMOS_ENDPOINT", plain.GetEndpoint("api")).WaitFor(plain);

builder.Build().Run();
