// Whatever comes in, reading ends with operations or with a message, and reads nothing outside the
// body. Bytes are also tried as a row with a right checksum, which a fuzzer would hardly find.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/assert.h"
#include "protocol/wire/hybrid_row.h"

namespace {

using namespace orrery;

void check(std::string_view body) {
  const auto operations = read_hybrid_row_batch(body);
  if (!operations) {
    ORRERY_ASSERT(operations.error().code() == ErrorCode::BadRequest);
    ORRERY_ASSERT(!operations.error().message().empty());
    return;
  }
  ORRERY_ASSERT(!operations->empty() && operations->size() <= kBatchOperationsMax);
  for (const BatchOperation& operation : *operations) {
    if (!operation.resource_body || operation.resource_body->empty()) continue;
    ORRERY_ASSERT(operation.resource_body->data() >= body.data());
    ORRERY_ASSERT(operation.resource_body->data() + operation.resource_body->size() <=
                  body.data() + body.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  check(input);

  std::string stream("\x81\xf0\xd8\xff\x7f\x01\x0a\x00\x00\x00\x81\xf1\xd8\xff\x7f", 15);
  const auto length = static_cast<std::int32_t>(size);
  const std::uint32_t checksum = crc32(input);
  char numbers[8];
  std::memcpy(numbers, &length, 4);
  std::memcpy(numbers + 4, &checksum, 4);
  stream.append(numbers, sizeof numbers).append(input);
  check(stream);
  return 0;
}
