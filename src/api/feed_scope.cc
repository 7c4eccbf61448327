#include "api/feed_scope.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "api/document_request.h"
#include "protocol/headers.h"

namespace orrery::api {
namespace {

/// `<id>` or `<container rid>,<id>`.
Result<const catalog::Range*> named_range(const Context& context,
                                          const catalog::Container& container) {
  std::string_view header = context.header(headers::kPartitionKeyRangeId);
  if (header.empty()) return nullptr;
  if (const auto comma = header.find(','); comma != std::string_view::npos) {
    if (header.substr(0, comma) != container.rid_text) {
      return Error(ErrorCode::NameCacheStale,
                   fmt::format("The range {} belongs to another container than {}: the name was "
                               "given to a new one. Read the container again.",
                               header, container.rid_text));
    }
    header.remove_prefix(comma + 1);
  }
  std::uint32_t number = 0;
  const auto [end, failure] = std::from_chars(header.data(), header.data() + header.size(), number);
  const bool valid = failure == std::errc() && end == header.data() + header.size();
  const auto* range = valid ? container.ranges.find(RangeId{number}) : nullptr;
  if (range == nullptr) {
    return Error(
        ErrorCode::RangeGone,
        fmt::format("The requested resource is no longer available at the server: there is "
                    "no partition key range '{}'. Read the ranges again.",
                    header));
  }
  return range;
}

Result<std::optional<EpkRange>> epk_bounds(const Context& context) {
  const auto start = context.header(headers::kStartEpk);
  const auto end = context.header(headers::kEndEpk);
  if (end.empty()) {
    if (start.empty()) return std::optional<EpkRange>();
    return Error(ErrorCode::BadRequest,
                 "x-ms-start-epk needs x-ms-end-epk beside it: the end of the part to read, "
                 "exclusive.");
  }
  EpkRange bounds;
  ORRERY_TRY(bounds.min, Epk::from_hex(start));
  ORRERY_TRY(bounds.max, Epk::from_hex(end));
  if (!(bounds.min < bounds.max)) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("x-ms-start-epk '{}' must be below x-ms-end-epk '{}'.", start, end));
  }
  return std::optional(std::move(bounds));
}

}  // namespace

Result<FeedScope> feed_scope(Context& context, const catalog::Container& container) {
  FeedScope scope;
  const auto& definition = container.definition.partition_key();
  ORRERY_TRY(const auto key, key_header(context));
  if (key && !key->empty() && key->size() >= definition.paths.size()) {
    ORRERY_TRY(const auto full, required_key(context, container.definition));
    KeyPlace place = place_of(container.definition, full);
    scope.ranges.push_back(&route(context, place.epk));
    if (!definition.paths.empty()) scope.partition_key = std::move(place.canonical);
    scope.epks = effective_key_range(definition, full);
    if (definition.paths.empty()) scope.epks.reset();
    return scope;
  }

  ORRERY_TRY(scope.epks, epk_bounds(context));
  if (key && !key->empty()) {
    ORRERY_TRY(check_key_size(definition, *key));
    EpkRange prefix = effective_key_range(definition, *key);
    if (scope.epks) {
      prefix.min = std::max(prefix.min, scope.epks->min);
      prefix.max = std::min(prefix.max, scope.epks->max);
    }
    scope.epks = std::move(prefix);
  }
  ORRERY_TRY(const auto* range, named_range(context, container));
  if (range != nullptr) {
    context.range = range;
    scope.ranges.push_back(range);
  } else if (scope.epks) {
    scope.ranges = container.ranges.overlapping(*scope.epks);
  } else {
    for (const catalog::Range& each : container.ranges.all()) scope.ranges.push_back(&each);
  }
  return scope;
}

}  // namespace orrery::api
