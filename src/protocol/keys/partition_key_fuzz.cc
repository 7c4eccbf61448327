// A key that parses survives being written, and equality is equality of canonical bytes.
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "protocol/keys/epk.h"
#include "protocol/keys/partition_key.h"

namespace {

std::string canonical(const orrery::PartitionKey& key) {
  std::string bytes;
  key.append_canonical(bytes);
  return bytes;
}

void check_hashes(const orrery::PartitionKey& key) {
  using namespace orrery;
  const PartitionKeyDefinition v1{.paths = {{"pk"}}, .kind = KeyKind::Hash, .version = 1};
  const PartitionKeyDefinition v2{.paths = {{"pk"}}, .kind = KeyKind::Hash, .version = 2};
  const PartitionKeyDefinition multi{.paths = std::vector<std::vector<std::string>>(key.size() + 1),
                                     .kind = KeyKind::MultiHash,
                                     .version = 2};
  for (const auto* definition : {&v1, &v2, &multi}) {
    const Epk epk = effective_partition_key(*definition, key);
    ORRERY_ASSERT(EpkRange{}.contains(epk));
    ORRERY_ASSERT(effective_key_range(*definition, key).contains(epk));
    ORRERY_ASSERT(epk.bytes.size() > Epk::kBytesMax || Epk::from_hex(epk.hex()).value() == epk);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view input(reinterpret_cast<const char*>(data), size);

  (void)parse_property_path(input);
  const auto key = PartitionKey::parse(input);
  if (!key) {
    ORRERY_ASSERT(key.error().code() == ErrorCode::BadRequest);
    return 0;
  }
  const std::string json = key->to_json();
  for (char c : json) ORRERY_ASSERT(c >= 0x20 && c < 0x7F);
  const auto again = PartitionKey::parse(json);
  ORRERY_ASSERT(again.has_value());
  ORRERY_ASSERT(*again == *key);
  ORRERY_ASSERT(again->to_json() == json);
  ORRERY_ASSERT(canonical(*again) == canonical(*key));

  // Two keys cut out of this one differ exactly when their bytes do, and none begins the other.
  for (std::size_t i = 1; i < key->size(); ++i) {
    const PartitionKey first({key->components()[i - 1]});
    const PartitionKey second({key->components()[i]});
    const std::string first_bytes = canonical(first);
    const std::string second_bytes = canonical(second);
    ORRERY_ASSERT((first == second) == (first_bytes == second_bytes));
    ORRERY_ASSERT(first == second || !first_bytes.starts_with(second_bytes));
  }
  check_hashes(*key);
  return 0;
}
