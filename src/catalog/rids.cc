#include "catalog/rids.h"

#include <string>

namespace orrery::catalog {
namespace {

/// The number in big-endian order, so that rids sort by age.
RidPart part_of(std::uint32_t number) {
  return {static_cast<std::uint8_t>(number >> 24), static_cast<std::uint8_t>(number >> 16),
          static_cast<std::uint8_t>(number >> 8), static_cast<std::uint8_t>(number)};
}

/// Some old clients mistreat these characters of a rid.
bool is_awkward(const Rid& rid) { return rid.text().find_first_of("+-") != std::string::npos; }

}  // namespace

Rid next_database_rid(Counters& counters) {
  for (;;) {
    const Rid rid = Rid::database(part_of(++counters.database));
    if (!is_awkward(rid)) return rid;
  }
}

Rid next_container_rid(Counters& counters, const Rid& database) {
  for (;;) {
    auto part = part_of(++counters.container);
    part[0] |= 0x80;
    const Rid rid = Rid::container(database.database_part(), part);
    if (!is_awkward(rid)) return rid;
  }
}

Rid next_encryption_key_rid(Counters& counters, const Rid& database) {
  for (;;) {
    const Rid rid = Rid::encryption_key(database, ++counters.encryption_key);
    if (!is_awkward(rid)) return rid;
  }
}

Rid next_offer_rid(Counters& counters) {
  for (;;) {
    const Rid rid = Rid::offer(++counters.offer);
    if (!is_awkward(rid)) return rid;
  }
}

}  // namespace orrery::catalog
