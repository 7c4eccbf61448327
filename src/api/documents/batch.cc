#include "api/documents/batch.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "api/documents/document_request.h"
#include "api/documents/patch.h"
#include "api/feed/feed_scope.h"
#include "api/handlers.h"
#include "api/reply.h"
#include "api/target.h"
#include "base/async.h"
#include "protocol/tokens/session_token.h"
#include "protocol/wire/headers.h"
#include "protocol/wire/hybrid_row.h"
#include "protocol/wire/range_gone.h"
#include "protocol/wire/resource_body.h"
#include "protocol/wire/wire_error.h"

namespace orrery::api {
namespace {

using partition::Write;

/// Bytes of a result beside its text: names, numbers, etag.
constexpr std::int64_t kResultBytesMax = 256;

Result<std::string_view> body_of(const BatchOperation& operation) {
  if (!operation.resource_body) {
    return bad_request("The operation lacks its 'resourceBody'.");
  }
  // Cosmos DB's binary JSON begins with this byte, which no JSON text does.
  if (operation.resource_body->starts_with('\x80')) {
    return bad_request(
        "The operation's 'resourceBody' is binary JSON, which this server does not read: switch "
        "binary encoding off in the client.");
  }
  return *operation.resource_body;
}

Result<std::string> id_of(const BatchOperation& operation) {
  if (!operation.id || operation.id->empty()) {
    return bad_request("The operation lacks the 'id' of its document.");
  }
  return *operation.id;
}

Write::Kind kind_of(BatchOperationType type) {
  switch (type) {
    case BatchOperationType::Create:
      return Write::Kind::Create;
    case BatchOperationType::Patch:
      return Write::Kind::Patch;
    case BatchOperationType::Read:
      return Write::Kind::Read;
    case BatchOperationType::Delete:
      return Write::Kind::Delete;
    case BatchOperationType::Replace:
      return Write::Kind::Replace;
    case BatchOperationType::Upsert:
      return Write::Kind::Upsert;
  }
  return Write::Kind::Read;
}

}  // namespace

Result<std::optional<PartitionKey>> key_of(const BatchOperation& operation) {
  if (!operation.partition_key) return std::optional<PartitionKey>();
  ORRERY_TRY(auto key, PartitionKey::parse(*operation.partition_key));
  return std::optional(std::move(key));
}

Result<PlannedOperation> plan_operation(const catalog::ContainerPtr& container,
                                        const BatchOperation& operation,
                                        const std::optional<PartitionKey>& key, bool minimal) {
  const ContainerDefinition& definition = container->definition;
  ORRERY_TRY(check_indexing_directive(operation.indexing_directive));
  PlannedOperation planned;
  Write& write = planned.write;
  write.kind = kind_of(operation.type);
  write.tells_text = !minimal;
  if (write.kind != Write::Kind::Create) write.if_match = operation.if_match;
  if (write.kind == Write::Kind::Read) write.if_none_match = operation.if_none_match;

  PartitionKey full;
  std::string id;
  const bool by_id = write.kind != Write::Kind::Create && write.kind != Write::Kind::Upsert;
  if (by_id) {
    ORRERY_TRY(full, required_key(definition, key));
    ORRERY_TRY(id, id_of(operation));
  }
  if (write.kind == Write::Kind::Patch) {
    ORRERY_TRY(const auto body, body_of(operation));
    ORRERY_TRY(write.change, read_patch(container, body));
  } else if (!by_id || write.kind == Write::Kind::Replace) {
    ORRERY_TRY(const auto body, body_of(operation));
    ORRERY_TRY(auto parsed, parse_document(definition, body, key));
    write.version = std::move(parsed.version);
    full = std::move(parsed.key);
    if (!by_id) id = write.version.new_id;
  }
  KeyPlace place = place_of(definition, full);
  planned.epk = place.epk;
  write.key = {std::move(place.epk.bytes), std::move(place.canonical), std::move(id)};
  return planned;
}

OperationOutcome OperationOutcome::of(partition::Written written, bool minimal,
                                      const ContainerDefinition& definition) {
  const OperationStatus status = status_of(written, definition);
  OperationOutcome outcome;
  outcome.status = status.status;
  outcome.charge = status.charge;
  if (written.kind != partition::Written::Kind::Deleted) outcome.etag = written.etag().text();
  if (!minimal) outcome.text = std::move(written.text);
  return outcome;
}

OperationOutcome OperationOutcome::of(const Error& error) {
  const WireError wire = wire_error(error.code());
  OperationOutcome outcome;
  outcome.status = wire.status;
  outcome.substatus = wire.substatus;
  outcome.message = error.message();
  outcome.charge = wire.status == 409 || wire.status == 412 ? kFailedWrite : kRefused;
  if (error.code() == ErrorCode::TooManyRequests) outcome.retry_after_ms = kBusyRetryMs;
  return outcome;
}

std::string write_outcomes(const std::vector<OperationOutcome>& outcomes, bool binary) {
  std::vector<BatchResult> results;
  results.reserve(outcomes.size());
  for (const OperationOutcome& outcome : outcomes) {
    results.push_back({.status = outcome.status,
                       .substatus = outcome.substatus,
                       .etag = outcome.etag,
                       .resource_body = outcome.text,
                       .message = outcome.message,
                       .retry_after_ms = outcome.retry_after_ms,
                       .charge_hundredths = outcome.charge.hundredths});
  }
  return binary ? write_hybrid_row_batch(results) : write_json_batch(results);
}

// ── The handler ──────────────────────────────────────────────────────────────────────────────────

namespace documents {
namespace {

using partition::Committed;
using partition::Transaction;

/// A request, read: the same for both kinds.
struct Batch {
  catalog::ContainerPtr container;
  std::vector<BatchOperation> operations;
  bool binary = false;
  bool minimal = false;  ///< of the whole request
  bool reads = false;    ///< whether any operation does
  std::shared_ptr<std::atomic<std::int64_t>> text_budget;
  std::vector<OperationOutcome> outcomes;  ///< one per operation

  bool minimal_for(std::size_t index) const { return minimal || operations[index].minimal_return; }
  Transaction transaction(partition::DocumentWrites work) const {
    work.text_budget = text_budget;
    return {.rules = container->rules, .work = std::move(work)};
  }
  void tell(std::size_t index, partition::Written written) {
    outcomes[index] =
        OperationOutcome::of(std::move(written), minimal_for(index), container->definition);
  }
};

Result<Batch> read_batch(const Context& context, catalog::ContainerPtr container) {
  Batch batch;
  batch.container = std::move(container);
  batch.binary = is_hybrid_row(context.request.body);
  batch.minimal = wants_minimal(context);
  ORRERY_TRY(batch.operations, batch.binary ? read_hybrid_row_batch(context.request.body)
                                            : read_json_batch(context.request.body));
  batch.reads = std::ranges::any_of(batch.operations, [](const BatchOperation& operation) {
    return operation.type == BatchOperationType::Read;
  });
  const auto count = static_cast<std::int64_t>(batch.operations.size());
  batch.text_budget =
      std::make_shared<std::atomic<std::int64_t>>(kBatchResponseBytesMax - count * kResultBytesMax);
  batch.outcomes.resize(batch.operations.size());
  return batch;
}

/// Where a range stood for the operations of a request that it dealt with.
struct RangeVisit {
  const catalog::Range* range = nullptr;
  Lsn lsn;
};

/// A transaction without a write is told the head that is staged; what is committed is what counts.
Lsn reached(const catalog::Range& range, Lsn told) {
  return std::min(told, range.partition->head());
}

/// `visits` has at least one. A batch that came to nothing says nothing of paths.
http::Response answer(Context& context, const Batch& batch, const std::vector<RangeVisit>& visits,
                      bool came_to_nothing) {
  context.charge = Charge{0};
  bool all_well = true;
  for (const OperationOutcome& outcome : batch.outcomes) {
    context.charge.hundredths += outcome.charge.hundredths;
    all_well = all_well && outcome.status < 300;
  }
  auto response = reply(context, all_well ? 200 : 207, write_outcomes(batch.outcomes, batch.binary),
                        batch.binary ? "application/octet-stream" : "application/json");
  if (visits.size() == 1) {
    add_range_headers(response, context, *visits.front().range, visits.front().lsn);
  } else {
    std::string token;
    for (const RangeVisit& visit : visits) {
      if (!token.empty()) token += ',';
      append_session_entry(token, context.token_form, batch.container->session_version,
                           visit.range->id, visit.lsn);
    }
    response.add(headers::kSessionToken.text, token);
  }
  if (came_to_nothing) {
    response.add(headers::kAltContentPath.text, batch.container->alt_content_path);
  } else {
    add_container_paths(response, *batch.container);
  }
  return response;
}

// ── Atomic ───────────────────────────────────────────────────────────────────────────────────────

Result<> check_same_key(const Batch& batch, const PartitionKey& key) {
  for (const BatchOperation& operation : batch.operations) {
    ORRERY_TRY(const auto named, key_of(operation));
    if (named && *named != key) {
      return bad_request(
          fmt::format("One or more operations within the batch request have a different partition "
                      "key value than the request. The request says {}, an operation {}.",
                      key.to_json(), named->to_json()));
    }
  }
  return {};
}

Async<http::Response> run_atomic(Context& context, Batch batch) {
  const auto& definition = batch.container->definition;
  ORRERY_CO_TRY(const auto key, required_key(context, definition));
  ORRERY_CO_TRY(check_same_key(batch, key));
  const catalog::Range& range = route(context, place_of(definition, key).epk);
  if (batch.reads) {
    ORRERY_CO_TRY(check_consistency(context));
    ORRERY_CO_TRY(check_session(context, range));
  }

  partition::DocumentWrites work;
  work.tell_failure = true;
  for (std::size_t index = 0; index < batch.operations.size(); ++index) {
    auto planned =
        plan_operation(batch.container, batch.operations[index], key, batch.minimal_for(index));
    if (planned) {
      work.writes.push_back(std::move(planned->write));
      continue;
    }
    // Those before it may fail first; those after it don't come to pass.
    work.writes.emplace_back().refusal = planned.error();
    break;
  }
  ORRERY_CO_TRY(auto committed,
                co_await range.partition->submit(batch.transaction(std::move(work))));
  const RangeVisit visit{&range, reached(range, committed.lsn)};
  if (committed.failure) {
    auto outcome = OperationOutcome::of(committed.failure->error);
    // The sub-status tells bulk clients to send the operation again, which would not help here.
    if (outcome.status == 413) outcome.substatus = 0;
    batch.outcomes[committed.failure->index] = std::move(outcome);
    co_return answer(context, batch, {visit}, true);
  }
  for (std::size_t index = 0; index < batch.operations.size(); ++index) {
    batch.tell(index, std::move(committed.writes[index]));
  }
  co_return answer(context, batch, {visit}, false);
}

// ── Bulk ─────────────────────────────────────────────────────────────────────────────────────────

/// Operations of one range, in their order.
struct RangeWork {
  std::vector<std::size_t> indexes;
  std::vector<Transaction> transactions;
};

Error other_range(const catalog::Range& named) {
  return range_gone(fmt::format("the key of the operation is not in the partition key range '{}'",
                                named.id.text()));
}

/// One bulk request on its way. Operations stand alone, so that one whose range was split or merged
/// under it is sent to where its key is now, while the others are done.
class BulkRun {
 public:
  BulkRun(const Services& services, Context& context, Batch batch)
      : services_(services), context_(context), batch_(std::move(batch)) {
    held_.push_back(batch_.container);
  }

  Async<http::Response> run(bool continues) {
    ORRERY_CO_TRY(named_, named_range(context_, *batch_.container));
    context_.target.range = named_;
    ORRERY_CO_TRY(key_, key_header(context_));
    if (batch_.reads) ORRERY_CO_TRY(check_reads());

    std::vector<std::size_t> indexes(batch_.operations.size());
    std::iota(indexes.begin(), indexes.end(), std::size_t{0});
    if (continues) {
      co_await run_together(std::move(indexes));
      co_return answer_all();
    }
    for (const std::size_t index : indexes) {
      co_await run_together({index});
      if (batch_.outcomes[index].failed()) break;
    }
    co_return answer_all();
  }

 private:
  /// A session that is not available is said of the whole request, before anything is done.
  Result<> check_reads() const {
    ORRERY_TRY(check_consistency(context_));
    if (named_ != nullptr) return check_session(context_, *named_);
    for (const catalog::Range& range : batch_.container->ranges.all()) {
      ORRERY_TRY(check_session(context_, range));
    }
    return {};
  }

  asio::awaitable<void> run_together(std::vector<std::size_t> pending) {
    for (int attempt = 1; !pending.empty(); ++attempt) {
      auto work = place_all(pending);
      pending.clear();
      for (auto& [range, of_range] : work) {
        auto committed = co_await range->partition->submit_all(std::move(of_range.transactions));
        for (std::size_t i = 0; i < committed.size(); ++i) {
          const std::size_t index = of_range.indexes[i];
          const bool gone = !committed[i] && committed[i].error().code() == ErrorCode::RangeGone;
          take(*range, index, std::move(committed[i]));
          if (gone && attempt < kRangeGoneAttemptsMax) pending.push_back(index);
        }
      }
      if (pending.empty() || !look_up_again()) co_return;
      std::ranges::sort(pending);
    }
  }

  std::map<const catalog::Range*, RangeWork> place_all(const std::vector<std::size_t>& indexes) {
    std::map<const catalog::Range*, RangeWork> work;
    for (const std::size_t index : indexes) {
      auto planned = plan(index);
      if (!planned) {
        batch_.outcomes[index] = OperationOutcome::of(planned.error());
        continue;
      }
      RangeWork& of_range = work[&batch_.container->ranges.owner_of(planned->epk)];
      of_range.indexes.push_back(index);
      partition::DocumentWrites one;
      one.writes.push_back(std::move(planned->write));
      of_range.transactions.push_back(batch_.transaction(std::move(one)));
    }
    return work;
  }

  Result<PlannedOperation> plan(std::size_t index) const {
    const BatchOperation& operation = batch_.operations[index];
    ORRERY_TRY(auto key, key_of(operation));
    if (!key) key = key_;
    ORRERY_TRY(auto planned,
               plan_operation(batch_.container, operation, key, batch_.minimal_for(index)));
    if (named_ != nullptr && &batch_.container->ranges.owner_of(planned.epk) != named_) {
      return other_range(*named_);
    }
    return planned;
  }

  /// Finds the container as it is now; from then on keys alone decide. False when it is as it was.
  bool look_up_again() {
    auto now = services_.catalog.container(batch_.container->rid);
    if (!now || now == batch_.container) return false;
    batch_.container = now;
    held_.push_back(std::move(now));
    named_ = nullptr;
    return true;
  }

  void take(const catalog::Range& range, std::size_t index, Result<Committed> committed) {
    RangeVisit& visit = visits_[range.id];
    visit.range = &range;
    visit.lsn =
        std::max(visit.lsn, committed ? reached(range, committed->lsn) : range.partition->head());
    if (committed) {
      batch_.tell(index, std::move(committed->writes.front()));
    } else {
      batch_.outcomes[index] = OperationOutcome::of(committed.error());
    }
  }

  http::Response answer_all() {
    // Nothing came to a range: the one that was named, or the first, stands for the answer.
    if (visits_.empty()) {
      const catalog::Range& range =
          named_ != nullptr ? *named_ : batch_.container->ranges.all().front();
      visits_[range.id] = {&range, range.partition->head()};
    }
    std::vector<RangeVisit> all;
    all.reserve(visits_.size());
    for (const auto& [id, visit] : visits_) all.push_back(visit);
    return answer(context_, batch_, all, false);
  }

  const Services& services_;
  Context& context_;
  Batch batch_;
  const catalog::Range* named_ =
      nullptr;                       // By the request; none once ranges have changed under it.
  std::optional<PartitionKey> key_;  // Of the request, for operations that name none.
  std::map<RangeId, RangeVisit> visits_;
  std::vector<catalog::ContainerPtr> held_;  // They own the ranges above.
};

}  // namespace

Async<http::Response> batch(Services& services, Context& context) {
  context.is_batch = true;
  ORRERY_CO_TRY(check_write_headers(context));
  ORRERY_CO_TRY(const bool atomic, context.flag(headers::kBatchAtomic));
  ORRERY_CO_TRY(const bool continues, context.flag(headers::kBatchContinueOnError));
  ORRERY_CO_TRY(auto read, read_batch(context, context.target.container));
  if (atomic) co_return co_await run_atomic(context, std::move(read));
  BulkRun bulk(services, context, std::move(read));
  co_return co_await bulk.run(continues);
}

}  // namespace documents
}  // namespace orrery::api
