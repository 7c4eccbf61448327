#include "api/feed/feed_scope.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "api/documents/document_request.h"
#include "protocol/wire/headers.h"
#include "protocol/wire/range_gone.h"

namespace orrery::api {
namespace {

/// A bound of either end. It may have an odd number of digits: for EPKs, which are whole bytes, "3"
/// lies where "30" does.
Result<Epk> epk_bound(HeaderName name, std::string_view hex) {
  std::string digits(hex);
  if (digits.size() % 2 != 0) digits.push_back('0');
  auto bound = Epk::from_hex(digits);
  if (!bound) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("The header {} is '{}', but must be hex digits, at most {} of them.",
                             name.text, hex.substr(0, 64), Epk::kBytesMax * 2));
  }
  return bound;
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
  ORRERY_TRY(bounds.min, epk_bound(headers::kStartEpk, start));
  ORRERY_TRY(bounds.max, epk_bound(headers::kEndEpk, end));
  if (!(bounds.min < bounds.max)) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("x-ms-start-epk '{}' must be below x-ms-end-epk '{}'.", start, end));
  }
  return std::optional(std::move(bounds));
}

}  // namespace

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
  // Exactly as it was given out: "00" is no range.
  const bool valid = failure == std::errc() && end == header.data() + header.size() &&
                     (header.size() == 1 || header.front() != '0');
  const auto* range = valid ? container.ranges.find(RangeId{number}) : nullptr;
  if (range == nullptr) return no_such_range(header);
  return range;
}

Result<executor::ContainerScope> feed_scope(Context& context, const catalog::Container& container) {
  executor::ContainerScope scope;
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
    ORRERY_TRY(check_key_size(*key));
    EpkRange prefix = effective_key_range(definition, *key);
    if (scope.epks) {
      prefix.min = std::max(prefix.min, scope.epks->min);
      prefix.max = std::min(prefix.max, scope.epks->max);
    }
    scope.epks = std::move(prefix);
  }
  ORRERY_TRY(const auto* range, named_range(context, container));
  if (range != nullptr) {
    context.target.range = range;
    scope.ranges.push_back(range);
  } else if (scope.epks) {
    scope.ranges = container.ranges.overlapping(*scope.epks);
  } else {
    for (const catalog::Range& each : container.ranges.all()) scope.ranges.push_back(&each);
  }
  return scope;
}

}  // namespace orrery::api
