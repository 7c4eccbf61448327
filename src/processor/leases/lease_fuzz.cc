// Whatever stands in a lease container: it is refused in words, or it is a lease of one of the four
// formats, and what this host writes into it is read again as it was meant.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "processor/leases/lease.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  using namespace orrery::processor;
  StoredDocument document;
  document.id = "group..0";
  document.text.assign(reinterpret_cast<const char*>(data), size);
  document.etag = "\"1\"";
  document.ts = 1'700'000'000;
  const auto lease = parse_lease(document);
  if (!lease) {
    ORRERY_ASSERT(lease.error().code() == ErrorCode::BadRequest);
    ORRERY_ASSERT(!lease.error().message().empty());
    return 0;
  }
  (void)lease->epoch(), (void)lease->generation();

  Lease changed = *lease;
  changed.owner = "host-\"1\"";
  changed.position = "\"4711\"";
  changed.timestamp = WallTime(std::chrono::seconds(1'700'000'000));
  changed.properties["orrery.epoch"] = "7";
  if (!changed.mode) changed.mode = client::ChangeFeedMode::LatestVersion;
  document.text = write_lease(changed);
  const auto again = parse_lease(document);
  ORRERY_ASSERT(again.has_value());
  ORRERY_ASSERT(again->owner == changed.owner && again->position == changed.position);
  ORRERY_ASSERT(again->timestamp == changed.timestamp);
  for (const auto& property : changed.properties) {
    ORRERY_ASSERT(again->properties.contains(property.first) &&
                  again->properties.at(property.first) == property.second);
  }
  ORRERY_ASSERT(again->token == changed.token && again->range == changed.range);
  ORRERY_ASSERT(again->format == changed.format && again->mode == changed.mode);
  return 0;
}
