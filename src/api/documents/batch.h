// Transactional batch and bulk: from operations to writes, and from what came of them to results.
// The handler itself is documents::batch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/charge.h"
#include "base/error.h"
#include "base/result.h"
#include "catalog/catalog.h"
#include "partition/writer/transaction.h"
#include "protocol/keys/epk.h"
#include "protocol/keys/partition_key.h"
#include "protocol/wire/batch.h"

namespace orrery::api {

/// The size limit of the response to a batch.
inline constexpr std::int64_t kBatchResponseBytesMax = 4 << 20;

/// One operation, ready for the writer.
struct PlannedOperation {
  partition::Write write;
  Epk epk;  ///< of its key: which range it goes to
};

/// Checks an operation against the container and makes a write of it. `key` is the one of the
/// request or, in bulk, of the operation; Create and Upsert can do without. `minimal`: the answer
/// needs no text. BadRequest; PartitionKeyMismatch.
Result<PlannedOperation> plan_operation(const catalog::ContainerPtr& container,
                                        const BatchOperation& operation,
                                        const std::optional<PartitionKey>& key, bool minimal);

/// The key that an operation names; nothing when it names none. BadRequest.
Result<std::optional<PartitionKey>> key_of(const BatchOperation& operation);

/// The outcome of one operation. By default it was not tried, because another one failed.
struct OperationOutcome {
  int status = 424;
  int substatus = 0;
  std::string etag;
  std::string text;
  std::string message;
  std::uint32_t retry_after_ms = 0;
  Charge charge{0};

  bool failed() const { return status >= 400; }

  static OperationOutcome of(partition::Written written, bool minimal,
                             const ContainerDefinition& definition);
  static OperationOutcome of(const Error& error);
};

/// All results, in the form of the request.
std::string write_outcomes(const std::vector<OperationOutcome>& outcomes, bool binary);

}  // namespace orrery::api
