// Partition key ranges: what clients route by. Four of them loop here until they see a 304.
#include <algorithm>

#include <fmt/format.h>

#include "api/handlers.h"
#include "api/reply.h"
#include "api/resources/resource_list.h"
#include "api/target.h"

namespace orrery::api::ranges {
namespace {

std::string map_etag(const catalog::Container& container, std::uint64_t version) {
  return fmt::format("\"{}\"", container.map_version_base + version);
}

std::string to_json(const catalog::Container& container, const catalog::Range& range) {
  const std::string rid = Rid::range(container.rid, range.id).text();
  std::string parents;
  for (const RangeId parent : range.parents) {
    if (!parents.empty()) parents.push_back(',');
    parents += fmt::format("\"{}\"", parent.value);
  }
  const ETag etag(Lsn{range.made_in}, range.ts);
  const auto bare_etag = etag.text().substr(1, ETag::kSize - 2);
  return fmt::format(
      R"({{"_rid":"{}","id":"{}","_etag":"\"{}\"","minInclusive":"{}","maxExclusive":"{}",)"
      R"("ridPrefix":{},"_self":"{}pkranges/{}/","throughputFraction":{},"status":"online",)"
      R"("parents":[{}],"ownedArchivalPKRangeIds":[],"_ts":{},"_lsn":{}}})",
      rid, range.id.value, bare_etag, range.epks.min.hex(), range.epks.max.hex(), range.id.value,
      container.self(), rid, 1.0 / static_cast<double>(container.ranges.all().size()), parents,
      range.ts, range.partition->head().value);
}

http::Response to_response(Context& context, const catalog::Container& container,
                           const std::vector<const catalog::Range*>& shown) {
  std::string body;
  open_feed(body, container.rid_text, "PartitionKeyRanges");
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (i > 0) body.push_back(',');
    body += to_json(container, *shown[i]);
  }
  close_feed(body, shown.size());
  auto response = reply(context, 200, std::move(body));
  response.add(headers::kEtag.text, map_etag(container, container.ranges.version()));
  response.add(headers::kItemCount.text, shown.size());
  response.add(headers::kSchemaVersion.text, "1.1");
  return response;
}

std::vector<const catalog::Range*> all_ranges(const catalog::RangeMap& map) {
  std::vector<const catalog::Range*> all;
  for (const catalog::Range& range : map.all()) all.push_back(&range);
  return all;
}

bool is_incremental(const Context& context) { return !context.header(headers::kAIm).empty(); }

}  // namespace

Result<http::Response> list(Services&, Context& context) {
  const auto& container = context.target.container;
  const auto& map = container->ranges;
  if (context.request.method == "POST") {
    std::vector<ListedResource> all;
    for (const catalog::Range* range : all_ranges(map)) {
      all.push_back({Rid::range(container->rid, range->id), to_json(*container, *range)});
    }
    return query_list(context, container->rid_text, "PartitionKeyRanges", all);
  }
  const std::string etag = map_etag(*container, map.version());
  const auto condition = context.header(headers::kIfNoneMatch);

  auto shown = all_ranges(map);
  std::optional<std::string> continuation;
  if (is_incremental(context)) {
    if (condition == etag || condition == etag.substr(1, etag.size() - 2)) {
      auto response = reply(context, 304);
      response.add(headers::kEtag.text, etag);
      response.add(headers::kItemCount.text, "0");
      response.add(headers::kSchemaVersion.text, "1.1");
      return response;
    }
    // An older version of the map: what came since. One that we never gave out: everything.
    for (std::uint64_t version = 1; version < map.version(); ++version) {
      if (condition == map_etag(*container, version)) {
        std::erase_if(shown, [&](const auto* range) { return range->made_in <= version; });
        break;
      }
    }
  } else {
    ORRERY_TRY(const auto size, page_size(context, UINT32_MAX));
    if (const auto token = context.header(headers::kContinuation); !token.empty()) {
      ORRERY_TRY(const auto position, decode_list_continuation(token));
      const auto last = std::ranges::find_if(shown, [&](const auto* range) {
        return Rid::range(container->rid, range->id).bytes() == position.after;
      });
      if (last != shown.end()) shown.erase(shown.begin(), last + 1);
    }
    if (size && shown.size() > *size) {
      shown.resize(*size);
      const Rid last = Rid::range(container->rid, shown.back()->id);
      continuation = encode_continuation(ListPosition{std::string(last.bytes())});
    }
  }

  auto response = to_response(context, *container, shown);
  if (continuation) response.add(headers::kContinuation.text, *continuation);
  return response;
}

http::Response show(Context& context, const catalog::Container& container) {
  return to_response(context, container, all_ranges(container.ranges));
}

Result<http::Response> read(Services&, Context& context) {
  const auto& container = context.target.container;
  const std::string& name = context.path.names[2];
  for (const catalog::Range& range : container->ranges.all()) {
    if (range.id.text() == name || Rid::range(container->rid, range.id).text() == name) {
      return reply(context, 200, to_json(*container, range));
    }
  }
  return Error(ErrorCode::NotFound,
               fmt::format("Resource Not Found. There is no partition key range '{}'.", name));
}

}  // namespace orrery::api::ranges
