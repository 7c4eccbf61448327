// Point operations on documents: create, upsert, read, replace, patch, delete, and delete by
// partition key.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/documents/document_request.h"
#include "api/documents/patch.h"
#include "api/handlers.h"
#include "api/reply.h"
#include "base/header_name.h"
#include "protocol/wire/headers.h"

namespace orrery::api::documents {
namespace {

using partition::Write;
using partition::Written;

void add_item_headers(http::Response& response, const Context& context, Lsn lsn, Lsn item_lsn) {
  add_range_headers(response, context, *context.target.range, lsn);
  add_item_lsn(response, item_lsn);
  add_container_paths(response, *context.target.container);
  add_quota(response, *context.target.container);
}

http::Response written_reply(Context& context, const partition::Committed& committed,
                             const Written& written) {
  const OperationStatus outcome = status_of(written, context.target.container->definition);
  context.charge = outcome.charge;
  auto response =
      reply(context, outcome.status, wants_minimal(context) ? std::string() : written.text);
  if (written.kind != Written::Kind::Deleted) {
    response.add(headers::kEtag.text, written.etag().text());
  }
  add_item_headers(response, context, committed.lsn, committed.lsn);
  return response;
}

/// Turns a document addressed by rid into one addressed by id: writes go by id, and say which
/// document they mean.
Async<> find_id(Services& services, Context& context) {
  partition::DocumentAddress& address = *context.target.document;
  if (!address.number) co_return Result<>();
  const partition::Partition& partition = *context.target.range->partition;
  ORRERY_CO_TRY(address.key.id,
                co_await run_blocking(services.blocking, [&] { return partition.id_of(address); }));
  co_return Result<>();
}

/// A write to the document that the request addresses.
Write write_to_target(Context& context, Write::Kind kind) {
  partition::DocumentAddress& address = *context.target.document;
  Write write;
  write.kind = kind;
  write.key = std::move(address.key);
  write.number = address.number;
  write.if_match = context.header(headers::kIfMatch);
  return write;
}

Async<http::Response> commit(Context& context, Write write) {
  partition::DocumentWrites work;
  work.writes.push_back(std::move(write));
  partition::Transaction transaction{.rules = context.target.container->rules,
                                     .work = std::move(work)};
  ORRERY_CO_TRY(const auto committed,
                co_await context.target.range->partition->submit(std::move(transaction)));
  co_return written_reply(context, committed, committed.writes.front());
}

}  // namespace

Async<http::Response> create(Services&, Context& context) {
  const auto& container = context.target.container;
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
  ORRERY_CO_TRY(check_write_headers(context));
  ORRERY_CO_TRY(const auto named, key_header(context));
  ORRERY_CO_TRY(auto parsed,
                parse_document(context.target.container->definition, context.request.body, named));
  ORRERY_CO_TRY(co_await find_id(services, context));
  Write write = write_to_target(context, Write::Kind::Replace);
  write.version = std::move(parsed.version);
  co_return co_await commit(context, std::move(write));
}

Async<http::Response> patch(Services& services, Context& context) {
  ORRERY_CO_TRY(check_write_headers(context));
  ORRERY_CO_TRY(auto change, read_patch(context.target.container, context.request.body));
  ORRERY_CO_TRY(co_await find_id(services, context));
  Write write = write_to_target(context, Write::Kind::Patch);
  write.change = std::move(change);
  co_return co_await commit(context, std::move(write));
}

Async<http::Response> remove(Services& services, Context& context) {
  ORRERY_CO_TRY(check_write_headers(context));
  ORRERY_CO_TRY(co_await find_id(services, context));
  co_return co_await commit(context, write_to_target(context, Write::Kind::Delete));
}

Async<http::Response> read(Services& services, Context& context) {
  ORRERY_CO_TRY(check_consistency(context));
  ORRERY_CO_TRY(check_session(context, *context.target.range));
  const partition::Partition& partition = *context.target.range->partition;
  const partition::DocumentAddress& address = *context.target.document;
  const partition::PointReadOptions options{
      .default_ttl = context.target.container->rules.default_ttl,
      .if_none_match = context.header(headers::kIfNoneMatch)};
  // Before the document is read: what is read is at least as new.
  const Lsn head = partition.head();
  auto found = partition.read_from_memory(address, options);
  if (!found && found.error().code() == ErrorCode::NotInMemory) {
    found = co_await run_blocking(services.blocking, [&]() -> Result<partition::PointRead> {
      ORRERY_TRY(auto read, partition.read(address, options));
      ORRERY_TRY(hold_answer(context, read.text.size()));
      return read;
    });
  }
  ORRERY_CO_TRY(found);
  if (!found->is_unchanged) context.charge = read_charge(found->text.size());
  auto response = reply(context, found->is_unchanged ? 304 : 200, std::move(found->text));
  response.add(headers::kEtag.text, found->etag.text());
  add_item_headers(response, context, std::max(head, found->lsn), found->lsn);
  co_return response;
}

Async<http::Response> remove_all_of_key(Services&, Context& context) {
  const auto& container = context.target.container;
  ORRERY_CO_TRY(const auto key, required_key(context, container->definition));
  KeyPlace place = place_of(container->definition, key);
  const auto& range = route(context, place.epk);
  const partition::DocumentKey prefix{std::move(place.epk.bytes), std::move(place.canonical), {}};
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
