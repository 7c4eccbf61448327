// Point operations on documents: create, upsert, read, replace, patch, delete, and delete by
// partition key.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/addressing.h"
#include "api/documents/document_request.h"
#include "api/documents/patch.h"
#include "api/handlers.h"
#include "api/reply.h"
#include "base/header_name.h"
#include "partition/read/reader.h"
#include "protocol/wire/headers.h"

namespace orrery::api::documents {
namespace {

using partition::Found;
using partition::Write;
using partition::Written;
using storage::Lookup;
using storage::Tier;

Error missing() {
  return Error(ErrorCode::NotFound,
               "Resource Not Found. No document with this id exists under this partition key.");
}

void add_item_headers(http::Response& response, const Context& context, Lsn lsn, Lsn item_lsn) {
  add_range_headers(response, context, *context.range, lsn);
  add_item_lsn(response, item_lsn);
  add_container_paths(response, *context.container);
  add_quota(response, *context.container);
}

http::Response written_reply(Context& context, const partition::Committed& committed,
                             const Written& written) {
  const OperationStatus outcome = status_of(written, context.container->definition);
  context.charge = outcome.charge;
  auto response =
      reply(context, outcome.status, wants_minimal(context) ? std::string() : written.text);
  if (written.kind != Written::Kind::Deleted) {
    response.add(headers::kEtag.text, written.etag().text());
  }
  add_item_headers(response, context, committed.lsn, committed.lsn);
  return response;
}

/// Finds the document that a request addresses, without or with its text. Where memory does not
/// hold what is needed the answer is Unknown, and the caller asks again where it may block.
Lookup find(const storage::Store& store, PartitionNumber partition, const PointTarget& target,
            Tier tier, Found& found) {
  if (!target.number) return partition::find_entry(store, partition, target.key, tier, found);
  const auto lookup = partition::find_by_number(store, partition, *target.number, tier, found);
  if (lookup != Lookup::Found) return lookup;
  const auto version = found.version();
  const bool same_key =
      version.epk == target.key.epk && version.partition_key == target.key.partition_key;
  return same_key ? Lookup::Found : Lookup::Missing;
}

struct ReadResult {
  Lookup lookup = Lookup::Missing;
  bool unchanged = false;  ///< If-None-Match holds
  Found found;
};

ReadResult read_target(const Services& services, const catalog::Container& container,
                       PartitionNumber partition, const PointTarget& target,
                       std::string_view if_none_match, Tier tier) {
  // A version can be superseded between the look-up of its place and its reading, again and again
  // under a storm of writes to one document; each time the next look-up finds a newer one.
  constexpr int kAttemptsMax = 100;
  ReadResult result;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    result.lookup = find(services.store, partition, target, tier, result.found);
    if (result.lookup != Lookup::Found) return result;
    const auto& header = result.found.entry.header;
    if (storage::expired(header.ts, header.own_ttl, container.rules.default_ttl,
                         services.clock.unix_seconds())) {
      result.lookup = Lookup::Missing;
      return result;
    }
    if (!if_none_match.empty() && result.found.entry.etag().matches(if_none_match)) {
      result.unchanged = true;
      return result;
    }
    if (!result.found.record.empty()) return result;
    result.lookup = partition::fetch_version(services.store, partition, tier, result.found);
    if (result.lookup != Lookup::Missing) return result;
  }
  result.lookup = Lookup::Failed;
  return result;
}

/// Turns a document addressed by rid into one addressed by id: writes go by id, and say which
/// document they mean.
Result<> resolve_number(const Services& services, PartitionNumber partition, PointTarget& target) {
  if (!target.number) return {};
  Found found;
  switch (find(services.store, partition, target, Tier::Disk, found)) {
    case Lookup::Found:
      target.key.id = found.version().id;
      return {};
    case Lookup::Missing:
      return missing();
    default:
      return Error(ErrorCode::Unavailable, "the disk could not be read");
  }
}

Async<> resolve_target(Services& services, const Context& context, PointTarget& target) {
  if (!target.number) co_return Result<>();
  const auto partition = context.range->partition->number();
  const auto resolved = co_await run_blocking(services.blocking, [&services, partition, &target] {
    return resolve_number(services, partition, target);
  });
  ORRERY_CO_TRY(context.range->partition->check_in_place());
  co_return resolved;
}

Async<http::Response> commit(Context& context, Write write) {
  partition::DocumentWrites work;
  work.writes.push_back(std::move(write));
  partition::Transaction transaction{.rules = context.container->rules, .work = std::move(work)};
  ORRERY_CO_TRY(const auto committed,
                co_await context.range->partition->submit(std::move(transaction)));
  co_return written_reply(context, committed, committed.writes.front());
}

}  // namespace

Async<http::Response> create(Services& services, Context& context) {
  ORRERY_CO_TRY(const auto container, find_container(services, context, ErrorCode::OwnerNotFound));
  ORRERY_CO_TRY(check_write_headers(context));
  ORRERY_CO_TRY(const bool upsert, context.flag(headers::kIsUpsert));
  ORRERY_CO_TRY(const auto named, key_header(context));
  ORRERY_CO_TRY(auto parsed, parse_document(container->definition, context.request.body, named));
  KeyPlace place = place_of(container->definition, parsed.key);
  route(context, place.epk);
  Write write;
  write.kind = upsert ? Write::Kind::Upsert : Write::Kind::Create;
  write.key = {std::move(place.epk.bytes), std::move(place.canonical), parsed.version.new_id};
  write.version = std::move(parsed.version);
  if (upsert) write.if_match = context.header(headers::kIfMatch);
  co_return co_await commit(context, std::move(write));
}

Async<http::Response> replace(Services& services, Context& context) {
  ORRERY_CO_TRY(const auto container, find_container(services, context, ErrorCode::OwnerNotFound));
  ORRERY_CO_TRY(check_write_headers(context));
  ORRERY_CO_TRY(auto target, point_target(services, context));
  ORRERY_CO_TRY(const auto named, key_header(context));
  ORRERY_CO_TRY(auto parsed, parse_document(container->definition, context.request.body, named));
  ORRERY_CO_TRY(co_await resolve_target(services, context, target));
  Write write;
  write.kind = Write::Kind::Replace;
  write.key = std::move(target.key);
  write.number = target.number;
  write.version = std::move(parsed.version);
  write.if_match = context.header(headers::kIfMatch);
  co_return co_await commit(context, std::move(write));
}

Async<http::Response> patch(Services& services, Context& context) {
  ORRERY_CO_TRY(const auto container, find_container(services, context, ErrorCode::OwnerNotFound));
  ORRERY_CO_TRY(check_write_headers(context));
  ORRERY_CO_TRY(auto target, point_target(services, context));
  ORRERY_CO_TRY(auto change, read_patch(container, context.request.body));
  ORRERY_CO_TRY(co_await resolve_target(services, context, target));
  Write write;
  write.kind = Write::Kind::Patch;
  write.key = std::move(target.key);
  write.number = target.number;
  write.if_match = context.header(headers::kIfMatch);
  write.change = std::move(change);
  co_return co_await commit(context, std::move(write));
}

Async<http::Response> remove(Services& services, Context& context) {
  ORRERY_CO_TRY(const auto container, find_container(services, context, ErrorCode::OwnerNotFound));
  ORRERY_CO_TRY(check_write_headers(context));
  ORRERY_CO_TRY(auto target, point_target(services, context));
  ORRERY_CO_TRY(co_await resolve_target(services, context, target));
  Write write;
  write.kind = Write::Kind::Delete;
  write.key = std::move(target.key);
  write.number = target.number;
  write.if_match = context.header(headers::kIfMatch);
  co_return co_await commit(context, std::move(write));
}

Async<http::Response> read(Services& services, Context& context) {
  ORRERY_CO_TRY(const auto container, find_container(services, context, ErrorCode::OwnerNotFound));
  ORRERY_CO_TRY(check_consistency(context));
  ORRERY_CO_TRY(const auto target, point_target(services, context));
  ORRERY_CO_TRY(check_session(context, *context.range));
  const auto& partition = *context.range->partition;
  // Before the document is read: what is read is at least as new.
  const Lsn head = partition.head();
  const auto condition = context.header(headers::kIfNoneMatch);
  auto result =
      read_target(services, *container, partition.number(), target, condition, Tier::Memory);
  if (result.lookup == Lookup::Unknown) {
    ORRERY_CO_TRY(result, co_await run_blocking(services.blocking, [&]() -> Result<ReadResult> {
                    auto read = read_target(services, *container, partition.number(), target,
                                            condition, Tier::Disk);
                    ORRERY_TRY(hold_answer(context, read.found.record.size()));
                    return read;
                  }));
  }
  ORRERY_CO_TRY(context.range->partition->check_in_place());
  if (result.lookup == Lookup::Missing) co_return missing();
  if (result.lookup != Lookup::Found) {
    co_return Error(ErrorCode::Unavailable, "the document could not be read from the disk");
  }

  const auto& entry = result.found.entry;
  std::string body;
  if (!result.unchanged) {
    body = std::move(result.found.record);
    body.erase(0, body.size() - entry.text_size);
    context.charge = read_charge(entry.text_size);
  }
  auto response = reply(context, result.unchanged ? 304 : 200, std::move(body));
  response.add(headers::kEtag.text, entry.etag().text());
  add_item_headers(response, context, std::max(head, entry.position.lsn), entry.position.lsn);
  co_return response;
}

Async<http::Response> remove_all_of_key(Services& services, Context& context) {
  ORRERY_CO_TRY(const auto container, find_container(services, context, ErrorCode::OwnerNotFound));
  ORRERY_CO_TRY(const auto key, required_key(context, container->definition));
  KeyPlace place = place_of(container->definition, key);
  const auto& range = route(context, place.epk);
  const storage::DocumentKey prefix{std::move(place.epk.bytes), std::move(place.canonical), {}};
  Lsn lsn = range.partition->head();
  for (bool more = true; more;) {
    partition::Transaction transaction{.rules = container->rules,
                                       .work = partition::DeleteByKey{prefix}};
    ORRERY_CO_TRY(const auto committed, co_await range.partition->submit(std::move(transaction)));
    lsn = std::max(lsn, committed.lsn);
    more = committed.more;
  }
  context.charge = kMetadataWrite;
  auto response = reply(context, 200);
  add_range_headers(response, context, range, lsn);
  add_container_paths(response, *container);
  co_return response;
}

}  // namespace orrery::api::documents
