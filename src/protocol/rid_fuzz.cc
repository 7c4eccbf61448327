// A rid that parses has exactly one text and one form as bytes.
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "protocol/ids.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view input(reinterpret_cast<const char*>(data), size);

  if (const auto rid = Rid::parse(input)) {
    ORRERY_ASSERT(rid->text() == input);
    ORRERY_ASSERT(Rid::from_bytes(rid->bytes()) == rid);
  }
  if (const auto rid = Rid::from_bytes(input)) {
    ORRERY_ASSERT(rid->bytes() == input);
    ORRERY_ASSERT(Rid::parse(rid->text()) == rid);
    switch (rid->kind()) {
      case RidKind::Document:
        ORRERY_ASSERT(Rid::document(rid->container_rid(), DocumentNumber{rid->counter()}) == *rid);
        break;
      case RidKind::Container:
        ORRERY_ASSERT(rid->container_rid() == *rid);
        break;
      case RidKind::Database:
        ORRERY_ASSERT(rid->database_rid() == *rid);
        break;
      default:
        break;
    }
  }
  return 0;
}
