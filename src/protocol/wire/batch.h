// Transactional batch and bulk: the operations that a request carries and the results that answer
// them, whichever of the two forms they travel in: JSON (here) or binary
// (protocol/wire/hybrid_row.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"

namespace orrery {

inline constexpr std::size_t kBatchOperationsMax = 100;

/// The numbers are those of the binary form.
enum class BatchOperationType : std::int32_t {
  Create = 0,
  Patch = 1,
  Read = 2,
  Delete = 4,
  Replace = 5,
  Upsert = 20,
};

/// One operation as the client sent it; only its form has been checked.
struct BatchOperation {
  BatchOperationType type = BatchOperationType::Create;
  std::optional<std::string> partition_key;  ///< the JSON text of an array
  std::optional<std::string> id;
  /// JSON text: a document, or what a patch does. Points into the body of the request.
  std::optional<std::string_view> resource_body;
  std::string if_match;       ///< empty: no condition
  std::string if_none_match;  ///< likewise
  std::string indexing_directive;
  bool minimal_return = false;

  bool operator==(const BatchOperation&) const = default;
};

/// The result of one operation. The views must live until it is written.
struct BatchResult {
  int status = 0;
  int substatus = 0;
  std::string_view etag;           ///< with its quotes; empty: none
  std::string_view resource_body;  ///< the document; empty: none
  std::string_view message;        ///< of a failure
  std::uint32_t retry_after_ms = 0;
  std::int64_t charge_hundredths = 0;
};

/// Reads a JSON array of operations. BadRequest, saying which operation and what to mend; also when
/// there are none, or more than kBatchOperationsMax.
Result<std::vector<BatchOperation>> read_json_batch(std::string_view body);

/// A JSON array of results, in the order given.
std::string write_json_batch(std::span<const BatchResult> results);

/// The error of both forms when `count` operations are too many or too few for a batch.
Result<> check_batch_size(std::size_t count);

}  // namespace orrery
