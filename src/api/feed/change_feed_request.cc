// Reading the headers of a change feed request.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "api/documents/document_request.h"
#include "api/feed/change_feed.h"
#include "api/feed/feed_filter.h"
#include "api/feed/feed_push.h"
#include "api/feed/feed_scope.h"
#include "api/reply.h"
#include "base/header_name.h"
#include "protocol/wire/headers.h"
#include "protocol/wire/http_date.h"
#include "protocol/wire/range_gone.h"

namespace orrery::api {
namespace {

constexpr std::uint32_t kPageDefault = 100;
/// Of the body; what closes the envelope must fit too.
constexpr std::size_t kPageBytesMax = (std::size_t{4} << 20) - 256;
constexpr std::string_view kWireFormat = "2021-09-15";
/// x-ms-cosmos-sdk-supportedcapabilities: applies If-Modified-Since on every page, since after a
/// merge older changes may follow newer ones.
constexpr std::uint64_t kUnderstandsTimeAfterMerge = 2;

Result<feed::Mode> feed_mode(const Context& context) {
  const auto given = context.header(headers::kAIm);
  if (equal_ignoring_case(given, "Incremental feed")) return feed::Mode::Latest;
  if (equal_ignoring_case(given, "Full-Fidelity Feed")) return feed::Mode::AllVersions;
  return Error(ErrorCode::BadRequest,
               fmt::format("The header A-IM is '{}', but must be 'Incremental feed' or "
                           "'Full-Fidelity Feed'.",
                           given));
}

Result<bool> is_wrapped(const Context& context) {
  const auto given = context.header(headers::kChangeFeedWireFormatVersion);
  if (given.empty()) return false;
  if (given == kWireFormat) return true;
  return Error(ErrorCode::BadRequest,
               fmt::format("{} is '{}', but the only version is {}.",
                           headers::kChangeFeedWireFormatVersion.text, given, kWireFormat));
}

/// A header that has one value, or is absent.
Result<bool> is_given(const Context& context, HeaderName name, std::string_view value) {
  const auto given = context.header(name);
  if (given.empty()) return false;
  if (equal_ignoring_case(given, value)) return true;
  return Error(
      ErrorCode::BadRequest,
      fmt::format("The header {} is '{}', but must be '{}' or left out.", name.text, given, value));
}

std::uint64_t capabilities(const Context& context) {
  const auto given = context.header(headers::kSdkSupportedCapabilities);
  std::uint64_t bits = 0;
  const auto [end, failure] = std::from_chars(given.data(), given.data() + given.size(), bits);
  return failure == std::errc() && end == given.data() + given.size() ? bits : 0;
}

/// 3.4 of the protocol: which part of the container, in one range.
Result<> take_scope(Context& context, ChangeFeedRequest& request) {
  const catalog::Container& container = *context.target.container;
  ORRERY_TRY(is_given(context, headers::kReadKeyType, "EffectivePartitionKeyRange"));
  const bool partitioned = !container.definition.partition_key().paths.empty();
  ORRERY_TRY(const auto key, key_header(context));
  if (partitioned && key && key->empty()) {
    return Error(ErrorCode::BadRequest,
                 "The header x-ms-documentdb-partitionkey is an empty array: give the value of the "
                 "partition key, or a part of a hierarchical one, or leave the header out.");
  }
  ORRERY_TRY(auto scope, feed_scope(context, container));
  if (scope.ranges.size() != 1) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("The change feed is read one partition key range at a time, but the "
                             "request concerns {} of them. Name one in "
                             "x-ms-documentdb-partitionkeyrangeid, or a full partition key in "
                             "x-ms-documentdb-partitionkey.",
                             scope.ranges.size()));
  }
  const catalog::Range& range = *scope.ranges.front();
  context.target.range = &range;
  const bool bounded = !context.header(headers::kEndEpk).empty() && !scope.partition_key;
  const bool named = !context.header(headers::kPartitionKeyRangeId).empty();
  if (bounded && named && !key) {
    const bool inside = range.epks.min <= scope.epks->min && scope.epks->max <= range.epks.max;
    if (!inside) {
      return range_gone(
          fmt::format("the EPKs from '{}' to '{}' do not lie in the partition key range {}",
                      scope.epks->min.hex(), scope.epks->max.hex(), range.id.text()));
    }
    // The whole of it is no filter.
    if (*scope.epks == range.epks) scope.epks.reset();
  }
  request.range = &range;
  request.page.scope = {std::move(scope.epks), std::move(scope.partition_key)};
  return {};
}

Result<> refuse_other_scopes(const Context& context) {
  for (const HeaderName name : {headers::kPartitionKey, headers::kPartitionKeyRangeId,
                                headers::kStartEpk, headers::kEndEpk}) {
    if (context.header(name).empty()) continue;
    return Error(ErrorCode::BadRequest,
                 fmt::format("x-orrery-feed-scope: container reads all of the container, but {} "
                             "names a part of it. Leave one of the two out.",
                             name.text));
  }
  return {};
}

/// 5 and 6 of the protocol: where to begin.
Result<> take_start(const Context& context, ChangeFeedRequest& request) {
  std::optional<UnixSeconds> since;
  if (context.request.has_header(headers::kIfModifiedSince)) {
    const auto given = context.header(headers::kIfModifiedSince);
    since = parse_any_http_date(given);
    if (!since) {
      return Error(ErrorCode::BadRequest,
                   fmt::format("If-Modified-Since is '{}', but must be a date such as 'Tue, 15 Nov "
                               "2016 07:26:51 GMT'.",
                               given));
    }
    if (request.page.mode == feed::Mode::AllVersions) {
      return Error(ErrorCode::BadRequest,
                   "If-Modified-Since cannot be used with 'A-IM: Full-Fidelity Feed'. Begin with "
                   "If-None-Match: *, or go on with an etag.");
    }
  }
  if (const auto position = start_header(context)) {
    const auto given = *position;
    auto start = feed::parse_start(given);
    const bool now = start && start->kind == feed::Start::Kind::Now;
    if (request.range == nullptr && !now) {
      request.start.kind = feed::Start::Kind::After;
      ORRERY_TRY(request.container_start, feed::ContainerPosition::parse(given));
    } else {
      if (!start) return Error(start.error());
      request.start = *start;
    }
  }
  switch (request.start.kind) {
    case feed::Start::Kind::Beginning:
      request.since = since;
      break;
    case feed::Start::Kind::Now:
      break;
    case feed::Start::Kind::After:
      if ((capabilities(context) & kUnderstandsTimeAfterMerge) != 0) {
        request.page.newer_than = since;
      }
      request.page.after = request.start.after;
      request.page.began_at = request.start.began_at;
      break;
  }
  request.since_with_items = prefers(context, "return=representation");
  return {};
}

}  // namespace

std::vector<const catalog::Range*> ChangeFeedRequest::ranges(
    const catalog::Container& container) const {
  if (range != nullptr) return {range};
  std::vector<const catalog::Range*> all;
  for (const catalog::Range& each : container.ranges.all()) all.push_back(&each);
  return all;
}

bool prefers(const Context& context, std::string_view preference) {
  std::string_view list = context.header(headers::kPrefer);
  while (!list.empty()) {
    auto each = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), each.size() + 1));
    each = each.substr(0, each.find(';'));
    while (each.starts_with(' ')) each.remove_prefix(1);
    while (each.ends_with(' ')) each.remove_suffix(1);
    if (equal_ignoring_case(each, preference)) return true;
  }
  return false;
}

Result<ChangeFeedRequest> parse_change_feed(const Services& services, Context& context) {
  const catalog::Container& container = *context.target.container;
  ChangeFeedRequest request;
  ORRERY_TRY(request.page.mode, feed_mode(context));
  ORRERY_TRY(request.page.wrapped, is_wrapped(context));
  ORRERY_TRY(check_consistency(context));
  ORRERY_TRY(request.page.count_max, page_size(context, kPageDefault));
  request.page.bytes_max = kPageBytesMax;
  ORRERY_TRY(request.page.tombstones, is_given(context, headers::kFeedDeletes, "tombstones"));
  request.page.container = {container.rid, &container.definition.partition_key(),
                            container.rules.default_ttl};
  request.page.now = services.clock.unix_seconds();
  ORRERY_TRY(request.filter, feed_filter(context, request.page.mode));
  request.page.filter = request.filter.get();

  ORRERY_TRY(const bool whole, is_given(context, headers::kFeedScope, "container"));
  if (whole) {
    ORRERY_TRY(refuse_other_scopes(context));
  } else {
    ORRERY_TRY(take_scope(context, request));
  }
  ORRERY_TRY(take_start(context, request));
  for (const catalog::Range* range : request.ranges(container)) {
    ORRERY_TRY(check_session(context, *range));
  }
  return request;
}

}  // namespace orrery::api
