// Whatever a client sends as a container: a definition that is accepted survives the store, and is
// accepted again in every form that it was shown in. And as a client encryption key.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "protocol/container/client_encryption.h"
#include "protocol/container/container_definition.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  if (const auto key = parse_encryption_key({reinterpret_cast<const char*>(data), size})) {
    ORRERY_ASSERT(key->at("id").is_string());
    ORRERY_ASSERT(parse_encryption_key(key->dump()).value() == *key);
  }
  const auto body = parse_resource_body({reinterpret_cast<const char*>(data), size});
  if (!body) return 0;
  constexpr std::string_view kVersions[] = {"2017-11-15", "2018-09-17", "2018-12-31", "2020-07-15",
                                            ""};
  for (const std::string_view version : kVersions) {
    const auto definition = ContainerDefinition::create(*body, version);
    if (!definition) {
      ORRERY_ASSERT(definition.error().code() == ErrorCode::BadRequest);
      ORRERY_ASSERT(!definition.error().message().empty());
      continue;
    }
    const std::string stored = definition->to_stored().dump();
    const auto copy = ContainerDefinition::from_stored(Json::parse(stored));
    ORRERY_ASSERT(copy.to_stored().dump() == stored);
    ORRERY_ASSERT(copy.partition_key() == definition->partition_key());
    ORRERY_ASSERT(copy.unique_keys() == definition->unique_keys());
    ORRERY_ASSERT(copy.default_ttl() == definition->default_ttl());
    ORRERY_ASSERT(copy.indexes_everything() == definition->indexes_everything());
    ORRERY_ASSERT(!copy.indexes_everything() || copy.indexes({"a", "[]", "b"}));

    for (const std::string_view shown_to : kVersions) {
      const Json wire = definition->to_wire(shown_to);
      ORRERY_ASSERT(copy.to_wire(shown_to).dump() == wire.dump());
      const auto replaced = definition->replace(wire, version);
      ORRERY_ASSERT(replaced.has_value());
      ORRERY_ASSERT(replaced->partition_key() == definition->partition_key());
      ORRERY_ASSERT(replaced->unique_keys() == definition->unique_keys());
      ORRERY_ASSERT(replaced->to_wire(shown_to).dump() == wire.dump());
    }
  }
  return 0;
}
