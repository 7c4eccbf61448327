// Writes some stars, reads one, and follows what has changed: sky ENDPOINT KEY DATABASE.
#include <iostream>
#include <string>

#include <orrery/client.h>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    orrery::client::CosmosClient client(argv[1], std::string(argv[2]));
    client.create_database_if_not_exists(argv[3]);
    orrery::client::ContainerProperties properties;
    properties.id = "stars";
    properties.partition_key_paths = {"/constellation"};
    client.database(argv[3]).create_container_if_not_exists(properties);
    const auto stars = client.database(argv[3]).container("stars");
    stars.upsert_item(R"({"id":"deneb","constellation":"cygnus"})", "cygnus");
    stars.upsert_item(R"({"id":"vega","constellation":"lyra"})", "lyra");
    if (stars.read_item("vega", "lyra").value.find("\"vega\"") == std::string::npos) return 1;
    try {
      stars.read_item("sirius", "lyra");
      return 1;
    } catch (const orrery::client::CosmosException& failure) {
      if (!failure.is_not_found()) return 1;
    }
    std::size_t count = 0;
    auto feed = stars.change_feed();
    for (auto page = feed.next(); !page.not_modified; page = feed.next()) count += page.size();
    std::cout << count << " stars\n";
    return count == 2 ? 0 : 1;
  } catch (const orrery::client::CosmosException& failure) {
    std::cerr << failure.what() << '\n' << failure.diagnostics() << '\n';
    return 1;
  }
}
