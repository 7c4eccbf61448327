// Whatever stands in a log file, scanning it ends, and never finds more damage in front of what was
// appended properly than behind it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "storage/recovery/rocks_log.h"
#include "storage/recovery/wal_scan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery::storage;
  const std::string_view input(reinterpret_cast<const char*>(data), size);

  WalScanner raw(2);
  raw.add(1, input);
  const WalScan found = raw.finish();
  ORRERY_ASSERT(sound_size(input) <= input.size());
  ORRERY_ASSERT(found.verdict == WalScan::Verdict::Damaged || found.records_dropped == 0);

  // The same bytes as the content of a record, with a checksum that holds.
  std::string framed;
  append_rocks_log(framed, input);
  ORRERY_ASSERT(sound_size(framed) == framed.size());
  WalScanner scanner(2);
  scanner.add(1, framed);
  scanner.add(2, framed);
  (void)scanner.finish();
  return 0;
}
