// Packages: org.testcontainers:azure, com.azure:azure-cosmos of 2025 or newer.
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import org.testcontainers.containers.CosmosDBEmulatorContainer;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;

class CosmosContainer {
    // What your project gives to CosmosDBEmulatorContainer now: it takes no other image unless it is told to.
    static final String VENDORS_IMAGE = System.getenv("COSMOS_IMAGE");
    static final String KEY =
        "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

    /** The module, with another image, which it has to be told is one for it. */
    static CosmosDBEmulatorContainer module() {
        return new CosmosDBEmulatorContainer(
            DockerImageName.parse("orrery:0.1.0").asCompatibleSubstituteFor(VENDORS_IMAGE));
        // getEmulatorEndpoint() is https. buildNewKeyStore() asks for /_explorer/emulator.pem, which is there.
    }

    /** Without the module, over http. */
    public static void main(String[] arguments) {
        System.setProperty("COSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED", "true");
        try (GenericContainer<?> container = new GenericContainer<>(DockerImageName.parse("orrery:0.1.0"))
                .withExposedPorts(8081, 8080)
                .waitingFor(Wait.forHttp("/ready").forPort(8080))) {
            container.start();
            try (CosmosClient client = new CosmosClientBuilder()
                    .endpoint("http://" + container.getHost() + ":" + container.getMappedPort(8081) + "/")
                    .key(KEY)
                    .gatewayMode() // direct mode does not exist here
                    .buildClient()) {
                client.createDatabaseIfNotExists("shop");
            }
        }
    }
}
