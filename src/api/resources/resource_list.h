// Lists of resources other than documents: paging is the same for all.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/context.h"
#include "api/reply.h"
#include "base/result.h"
#include "protocol/ids.h"
#include "protocol/tokens/continuation.h"
#include "protocol/wire/headers.h"

namespace orrery::api {

/// A resource of a list, as the query over it sees it.
struct ListedResource {
  Rid rid;
  std::string text;
};

/// A page of the rows of the query that the request is, over these resources. BadRequest when the
/// query is wrong.
Result<http::Response> query_list(Context& context, std::string_view parent_rid,
                                  std::string_view array,
                                  const std::vector<ListedResource>& resources);

/// A page of `array`. `take(after, count)` returns at most `count` resources after the one whose
/// rid bytes are `after`; `write(resource)` its JSON text; `rid(resource)` its rid. A POST is a
/// query over all of them.
template <typename Take, typename Write, typename RidOf>
Result<http::Response> list_page(Context& context, std::string_view parent_rid,
                                 std::string_view array, Take take, Write write, RidOf rid) {
  if (context.request.method == "POST") {
    std::vector<ListedResource> all;
    for (const auto& resource : take(std::string_view(), SIZE_MAX)) {
      all.push_back({rid(*resource), write(*resource)});
    }
    return query_list(context, parent_rid, array, all);
  }
  constexpr std::uint32_t kPageDefault = 100;
  ORRERY_TRY(const auto size, page_size(context, kPageDefault));
  std::string after;
  if (const auto token = context.header(headers::kContinuation); !token.empty()) {
    ORRERY_TRY(auto position, decode_list_continuation(token));
    after = std::move(position.after);
  }
  // One more than the page holds tells whether there is a next one.
  const std::size_t limit = size ? *size : SIZE_MAX - 1;
  auto resources = take(std::string_view(after), limit + 1);
  const bool more = resources.size() > limit;
  if (more) resources.pop_back();
  std::string body;
  open_feed(body, parent_rid, array);
  bool first = true;
  for (const auto& resource : resources) {
    if (!first) body.push_back(',');
    first = false;
    body += write(*resource);
  }
  close_feed(body, resources.size());
  auto response = reply(context, 200, std::move(body));
  response.add(headers::kItemCount.text, resources.size());
  if (more) {
    const Rid last = rid(*resources.back());
    response.add(headers::kContinuation.text,
                 encode_continuation(ListPosition{std::string(last.bytes())}));
  }
  return response;
}

}  // namespace orrery::api
