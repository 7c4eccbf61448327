// Whatever comes in, reading ends with operations or with a message; bodies of operations lie in
// the body of the request.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "protocol/wire/batch.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view input(reinterpret_cast<const char*>(data), size);

  const auto operations = read_json_batch(input);
  if (!operations) {
    ORRERY_ASSERT(operations.error().code() == ErrorCode::BadRequest);
    ORRERY_ASSERT(!operations.error().message().empty());
    return 0;
  }
  ORRERY_ASSERT(!operations->empty() && operations->size() <= kBatchOperationsMax);
  for (const BatchOperation& operation : *operations) {
    if (!operation.resource_body) continue;
    ORRERY_ASSERT(!operation.resource_body->empty());
    ORRERY_ASSERT(operation.resource_body->data() >= input.data());
    ORRERY_ASSERT(operation.resource_body->data() + operation.resource_body->size() <=
                  input.data() + input.size());
  }
  return 0;
}
