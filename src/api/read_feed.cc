// The read feed: the documents of a container in `_rid` order, page by page.
#include <algorithm>
#include <cctype>
#include <chrono>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/addressing.h"
#include "api/change_feed.h"
#include "api/document_request.h"
#include "api/feed_scope.h"
#include "api/handlers.h"
#include "api/page_ahead.h"
#include "api/reply.h"
#include "partition/scan.h"
#include "protocol/continuation.h"
#include "protocol/headers.h"
#include "protocol/resource_body.h"

namespace orrery::api::documents {
namespace {

constexpr std::uint32_t kFeedPageDefault = 100;
constexpr std::uint32_t kQueryPageDefault = 1000;
constexpr std::size_t kPageBytesMax = 4 << 20;
/// A page that has found little by then ends, and says where to go on.
constexpr std::chrono::milliseconds kPageTimeMax{1000};

/// Documents of one range that are still to be read.
struct Piece {
  const catalog::Range* range;
  EpkRange epks;
  DocumentNumber after;
};

/// What a position leaves, in order. It may stem from other ranges than there are now: one that was
/// split has been read to the same document in each part, one that was merged only in its own.
std::vector<Piece> pieces_from(const ReadFeedPosition& at, const catalog::RangeMap& map,
                               const FeedScope& scope) {
  std::vector<Piece> stretches;
  Epk end = at.range_min;
  const auto add = [&](const Epk& max, DocumentNumber after) {
    if (max <= end) return;
    stretches.push_back({nullptr, {end, max}, after});
    end = max;
  };
  if (at.after != DocumentNumber{}) {
    add(at.range_max.value_or(map.owner_of(at.range_min).epks.max), at.after);
    if (at.rest) add(at.rest->max, at.rest->after);
  }
  add(Epk::max(), DocumentNumber{});

  std::vector<Piece> pieces;
  for (const catalog::Range* range : scope.ranges) {
    for (const Piece& stretch : stretches) {
      EpkRange epks{std::max(range->epks.min, stretch.epks.min),
                    std::min(range->epks.max, stretch.epks.max)};
      if (epks.max <= epks.min || (scope.epks && !scope.epks->overlaps(epks))) continue;
      pieces.push_back({range, std::move(epks), stretch.after});
    }
  }
  return pieces;
}

/// The position of whoever has read `last` in pieces[at], and nothing of those after it.
ReadFeedPosition position_in(const std::vector<Piece>& pieces, std::size_t at,
                             DocumentNumber last) {
  ReadFeedPosition position{pieces[at].epks.min, last, pieces[at].epks.max, {}};
  for (std::size_t i = at + 1; i < pieces.size() && pieces[i].after != DocumentNumber{}; ++i) {
    // A token holds one rest. Where there are more, some documents come again, and none is left
    // out.
    const auto after =
        position.rest ? std::min(position.rest->after, pieces[i].after) : pieces[i].after;
    position.rest = ReadFeedPosition::Rest{pieces[i].epks.max, after};
  }
  return position;
}

/// Only what lies in the piece, if that is not the whole range anyway.
std::optional<EpkRange> keys_within(const Piece& piece, const FeedScope& scope) {
  if (piece.epks == piece.range->epks) return scope.epks;
  if (!scope.epks) return piece.epks;
  return EpkRange{std::max(piece.epks.min, scope.epks->min),
                  std::min(piece.epks.max, scope.epks->max)};
}

Result<FeedPage> read_page(const Services& services, const catalog::Container& container,
                           const FeedScope& scope, const ReadFeedPosition& at,
                           std::optional<std::uint32_t> count_max) {
  FeedPage page;
  // A page without a bound by count is likely to be full.
  if (!count_max) page.body.reserve(kPageBytesMax);
  open_feed(page.body, container.rid_text, "Documents");
  // What closes the envelope must fit too.
  const std::size_t bytes_max = kPageBytesMax - 64;

  // Heads before the snapshot: what is read is at least as new as what the token says.
  for (const catalog::Range* range : scope.ranges) {
    page.heads.emplace_back(range, range->partition->head());
  }
  ORRERY_TRY(const auto snapshot, services.store.snapshot());
  for (const catalog::Range* range : scope.ranges) ORRERY_TRY(check_in_place(*range));

  partition::ScanFilter filter;
  filter.partition_key = scope.partition_key;
  filter.default_ttl = container.rules.default_ttl;
  filter.now = services.clock.unix_seconds();
  partition::ScanBudget budget{count_max.value_or(UINT32_MAX), bytes_max,
                               std::chrono::steady_clock::now() + kPageTimeMax};

  const auto pieces = pieces_from(at, container.ranges, scope);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    filter.epks = keys_within(pieces[i], scope);
    ORRERY_TRY(const auto outcome,
               partition::scan_by_number(snapshot, pieces[i].range->partition->number(),
                                         pieces[i].after, filter, budget, page.body, page.count));
    if (!outcome.exhausted) {
      page.next = position_in(pieces, i, outcome.last);
      break;
    }
    const bool full = count_max && page.count >= *count_max;
    const bool more =
        std::any_of(pieces.begin() + static_cast<std::ptrdiff_t>(i) + 1, pieces.end(),
                    [](const Piece& later) { return later.range->partition->documents() > 0; });
    if (full && more) page.next = position_in(pieces, i + 1, pieces[i + 1].after);
    if (full) break;
  }
  close_feed(page.body, page.count);
  return page;
}

/// What tells the requests of one reader from those of every other, whatever page they ask for.
std::string reader_key(const Context& context) {
  std::string key = context.container->rid_text;
  for (const HeaderName name : {headers::kPartitionKey, headers::kPartitionKeyRangeId,
                                headers::kStartEpk, headers::kEndEpk}) {
    key.append("\n").append(context.header(name));
  }
  return key.append("\n");
}

std::optional<ReadOn::Next> next_page(const Services& services,
                                      const catalog::ContainerPtr& container,
                                      const FeedScope& scope, const std::string& reader,
                                      const FeedPage& page) {
  // Where others write, what is read ahead is out of date before it is asked for.
  const bool quiet = std::ranges::all_of(
      page.heads, [](const auto& each) { return each.first->partition->head() == each.second; });
  if (!page.next || !quiet) return {};
  return ReadOn::Next{reader + encode_continuation(*page.next),
                      [&services, container, scope, next = *page.next] {
                        return read_page(services, *container, scope, next, std::nullopt);
                      }};
}

/// Reads the page that a request asks for, and goes on with those after it where they are likely to
/// be asked for next. Blocks.
Result<FeedPage> read_page_and_ahead(const Services& services, const Context& context,
                                     const FeedScope& scope, const ReadFeedPosition& position,
                                     std::optional<std::uint32_t> count_max) {
  const auto container = context.container;
  // Only whole-sale readers hurry. And where documents expire, a page is good for a second only.
  const bool hurried = !count_max && !container->rules.default_ttl;
  if (!hurried) return read_page(services, *container, scope, position, count_max);
  const std::string reader = reader_key(context);
  std::optional<FeedPage> ready;
  if (const auto token = context.header(headers::kContinuation); !token.empty()) {
    ready = services.page_ahead.take(reader + std::string(token), container);
  }
  if (ready) {
    ready->ahead->page_taken();
  } else {
    ORRERY_TRY(ready, read_page(services, *container, scope, position, count_max));
    std::make_shared<ReadOn>(services.page_ahead, services.scans, container,
                             [&services, container, scope, reader](const FeedPage& page) {
                               return next_page(services, container, scope, reader, page);
                             })
        ->after(*ready);
  }
  return std::move(*ready);
}

Async<http::Response> feed(Services& services, Context& context, std::uint32_t page_default) {
  const auto container = context.container;
  ORRERY_CO_TRY(check_consistency(context));
  ORRERY_CO_TRY(const auto count_max, page_size(context, page_default));
  ORRERY_CO_TRY(const auto scope, feed_scope(context, *container));
  for (const catalog::Range* range : scope.ranges) {
    ORRERY_CO_TRY(check_session(context, *range));
  }
  ReadFeedPosition position;
  if (const auto token = context.header(headers::kContinuation); !token.empty()) {
    ORRERY_CO_TRY(position, decode_read_feed_continuation(token));
  }
  ORRERY_CO_TRY(auto page, co_await run_blocking(services.scans, [&] {
                  return read_page_and_ahead(services, context, scope, position, count_max);
                }));
  context.charge = feed_page_charge(page.body.size());
  auto response = reply(context, 200, std::move(page.body));
  response.add(headers::kItemCount.text, page.count);
  add_container_paths(response, *container);
  if (page.heads.size() == 1) {
    add_range_headers(response, context, *page.heads[0].first, page.heads[0].second);
  } else {
    std::string token;
    for (const auto& [range, head] : page.heads) {
      if (!token.empty()) token.push_back(',');
      append_session_entry(token, context.token_form, range->id, head);
    }
    response.add(headers::kSessionToken.text, token);
  }
  if (page.next) response.add(headers::kContinuation.text, encode_continuation(*page.next));
  co_return response;
}

/// `SELECT * FROM c` with any alias, letter case and white space: what SDKs send to list all
/// documents.
bool selects_everything(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (std::isspace(c)) {
      ++at;
      continue;
    }
    if (c == '*') {
      words.emplace_back("*");
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) {
      ++end;
    }
    if (end == at) return false;
    std::string word(text.substr(at, end - at));
    std::ranges::transform(word, word.begin(), [](unsigned char l) { return std::tolower(l); });
    words.push_back(std::move(word));
    at = end;
  }
  if (words.size() == 6 && words[4] == "as") words.erase(words.begin() + 4);
  const bool shape = words.size() == 4 || words.size() == 5;
  const auto is_name = [](const std::string& word) {
    static constexpr std::string_view kReserved[] = {
        "*",      "and",    "as",    "asc",  "between",   "by",    "desc",  "distinct",
        "escape", "exists", "false", "from", "group",     "in",    "join",  "left",
        "like",   "limit",  "not",   "null", "offset",    "or",    "order", "right",
        "select", "top",    "true",  "udf",  "undefined", "value", "where"};
    return std::ranges::find(kReserved, word) == std::end(kReserved) &&
           !std::isdigit(static_cast<unsigned char>(word.front()));
  };
  return shape && words[0] == "select" && words[1] == "*" && words[2] == "from" &&
         std::all_of(words.begin() + 3, words.end(), is_name);
}

}  // namespace

Async<http::Response> read_feed(Services& services, Context& context) {
  ORRERY_CO_TRY(find_container(services, context, ErrorCode::OwnerNotFound));
  if (!context.header(headers::kAIm).empty()) {
    co_return co_await change_feed(services, context);
  }
  co_return co_await feed(services, context, kFeedPageDefault);
}

Async<http::Response> query(Services& services, Context& context) {
  ORRERY_CO_TRY(const auto container, find_container(services, context, ErrorCode::OwnerNotFound));
  ORRERY_CO_TRY(context.flag(headers::kEnableScan));
  std::string text;
  if (context.header(headers::kContentType).starts_with("application/sql")) {
    text = context.request.body;
  } else {
    ORRERY_CO_TRY(const auto body, parse_resource_body(context.request.body));
    const Json* member = find_member(body, "query");
    if (member == nullptr || !member->is_string()) {
      co_return Error(ErrorCode::BadRequest,
                      "The body of a query is {\"query\":\"…\",\"parameters\":[…]}.");
    }
    text = member->get<std::string>();
  }
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    co_return Error(ErrorCode::BadRequest, "Syntax error: the query text is empty.");
  }
  if (!selects_everything(text)) {
    co_return Error(ErrorCode::NotImplemented,
                    "Queries are not implemented yet, but for SELECT * FROM c, which lists all "
                    "documents.");
  }
  ORRERY_CO_TRY(const bool cross_partition, context.flag(headers::kEnableCrossPartition));
  const bool partitioned = !container->definition.partition_key().paths.empty();
  const auto key = context.header(headers::kPartitionKey);
  const bool targeted =
      (!key.empty() && key != "[]") || !context.header(headers::kPartitionKeyRangeId).empty();
  if (partitioned && !targeted && !cross_partition) {
    co_return Error(ErrorCode::BadRequest,
                    "Cross partition query is required but disabled. Please set "
                    "x-ms-documentdb-query-enablecrosspartition to true, or specify "
                    "x-ms-documentdb-partitionkey.");
  }
  co_return co_await feed(services, context, kQueryPageDefault);
}

}  // namespace orrery::api::documents
