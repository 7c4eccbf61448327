// Orrery's own operations on ranges: split one, merge two neighbours.
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "api/handlers.h"
#include "api/reply.h"
#include "api/target.h"
#include "maintenance/range_change.h"
#include "protocol/wire/range_gone.h"
#include "protocol/wire/resource_body.h"

namespace orrery::api::topology {
namespace {

Result<RangeId> range_id(const Json& value, std::string_view form) {
  if (!value.is_string()) {
    return Error(
        ErrorCode::BadRequest,
        fmt::format("The body of this operation is {}, with ids as pkranges has them.", form));
  }
  const auto& name = value.get_ref<const std::string&>();
  RangeId id;
  const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), id.value);
  if (failure != std::errc() || end != name.data() + name.size()) return no_such_range(name);
  return id;
}

/// The change runs where it takes nobody's place, and goes on if the caller leaves.
Async<http::Response> run(Services& services, Context& context,
                          std::unique_ptr<maintenance::RangeChange> change) {
  ORRERY_CO_TRY(const auto made,
                co_await run_blocking(services.topology, [change = std::move(change)]() mutable {
                  auto outcome = change->run();
                  // A client that hears of it may ask for more.
                  change.reset();
                  return outcome;
                }));
  context.charge = kMetadataWrite;
  co_return ranges::show(context, *made);
}

}  // namespace

Async<http::Response> split(Services& services, Context& context) {
  constexpr std::string_view kForm = R"({"range":"0"} or {"range":"0","at":"1FFF"})";
  const auto& container = context.target.container;
  ORRERY_CO_TRY(const auto body, parse_resource_body(context.request.body));
  const Json* named = find_member(body, "range");
  ORRERY_CO_TRY(const auto range, range_id(named != nullptr ? *named : Json(), kForm));
  std::optional<Epk> at;
  if (const Json* given = find_member(body, "at"); given != nullptr && !given->is_null()) {
    if (!given->is_string()) {
      co_return Error(ErrorCode::BadRequest,
                      "'at' must be an effective partition key: a string of hex digits.");
    }
    auto parsed = Epk::from_hex(given->get_ref<const std::string&>());
    if (!parsed) {
      co_return Error(ErrorCode::BadRequest, fmt::format("'at': {}", parsed.error().message()));
    }
    at = std::move(*parsed);
  }
  ORRERY_CO_TRY(auto change, services.range_changes.begin_split(container->rid, range, at));
  co_return co_await run(services, context, std::move(change));
}

Async<http::Response> merge(Services& services, Context& context) {
  constexpr std::string_view kForm = R"({"ranges":["1","2"]})";
  const auto& container = context.target.container;
  ORRERY_CO_TRY(const auto body, parse_resource_body(context.request.body));
  const Json* named = find_member(body, "ranges");
  if (named == nullptr || !named->is_array() || named->size() != 2) {
    co_return Error(ErrorCode::BadRequest,
                    fmt::format("The body of this operation is {}: two neighbours.", kForm));
  }
  ORRERY_CO_TRY(const auto one, range_id((*named)[0], kForm));
  ORRERY_CO_TRY(const auto other, range_id((*named)[1], kForm));
  ORRERY_CO_TRY(auto change, services.range_changes.begin_merge(container->rid, one, other));
  // The ranges that are left must serve the throughput, or they would be split again at once.
  const auto left = static_cast<std::int64_t>(container->ranges.all().size()) - 1;
  if (const auto offer = services.catalog.offers().of(container->rid);
      offer && offer->throughput.request_units() > left * kRangeUnitsMax) {
    co_return Error(
        ErrorCode::BadRequest,
        fmt::format("The container has {} RU/s, which {} range(s) of at most {} RU/s do not "
                    "serve: lower its throughput first, then merge.",
                    offer->throughput.request_units(), left, kRangeUnitsMax));
  }
  co_return co_await run(services, context, std::move(change));
}

}  // namespace orrery::api::topology
