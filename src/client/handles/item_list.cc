#include "client/handles/item_list.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "client/exchange/call_time.h"
#include "client/handles/resource.h"
#include "json/document_text.h"
#include "json/value.h"
#include "protocol/keys/partition_key.h"
#include "protocol/wire/headers.h"

namespace orrery::client {
namespace {

/// A range may be split again and again, but not as often as this while one page is asked for.
constexpr int kGoneMax = 20;
/// A split that is being finished takes so long at the most between two attempts.
constexpr std::chrono::milliseconds kGoneWaitMax{500};

class ItemList {
 public:
  ItemList(std::shared_ptr<Pipeline> pipeline, std::string container, std::optional<Query> query,
           const QueryOptions& options)
      : pipeline_(std::move(pipeline)),
        container_(std::move(container)),
        query_(std::move(query)),
        options_(options) {
    if (options.partition_key && options.feed_range) {
      refuse_argument("A list is of a partition key or of a feed range, not of both.");
    }
    if (options.feed_range && options.feed_range->min >= options.feed_range->max) {
      refuse_argument("The feed range is empty: its min must be below its max.");
    }
  }

  ItemPage read(const std::string& continuation) const {
    const CallTime time(options_);
    // Rows that are sorted, counted or cut off can't be put together from ranges that were asked
    // one by one.
    if (query_ && !options_.feed_range) return read_at_once(continuation, time);
    if (!options_.partition_key) {
      return read_ranges(options_.feed_range.value_or(FeedRange{}), continuation, time);
    }
    if (const auto slice = slice_of_prefix(time)) return read_ranges(*slice, continuation, time);
    return read_at_once(continuation, time);
  }

 private:
  Call base_call() const {
    Call call{.type = "docs", .link = container_, .list = true};
    call.container = container_;
    if (query_) {
      turn_into_query(call, *query_);
      call.headers.emplace_back(headers::kEnableCrossPartition.text, "True");
      // The client does not merge: the service's own gateway ignores this.
      call.headers.emplace_back(headers::kCrossPartitionQueries.text, "serve");
      const auto ask_for = [&](bool wanted, std::string_view header) {
        if (wanted) call.headers.emplace_back(header, "True");
      };
      ask_for(options_.populate_query_metrics, headers::kPopulateQueryMetrics.text);
      ask_for(options_.populate_index_metrics, headers::kPopulateIndexMetricsV2.text);
      ask_for(options_.explain, headers::kExplain.text);
    }
    // Without a bound by number a page has as many as there is room for.
    const std::string count_max =
        options_.page_size ? std::to_string(std::min<std::uint32_t>(*options_.page_size, INT32_MAX))
                           : "-1";
    call.headers.emplace_back(headers::kMaxItemCount.text, count_max);
    return call;
  }

  /// A prefix of a hierarchical key may lie in several ranges. Nothing for a whole key.
  std::optional<FeedRange> slice_of_prefix(const CallTime& time) const {
    const auto key = orrery::PartitionKey::parse(options_.partition_key->json());
    if (!key || key->size() == 0) return {};
    const auto routing = pipeline_->routing(container_, time.for_next_request());
    if (key->size() >= routing->definition().paths.size()) return {};
    return routing->slice_of(*options_.partition_key);
  }

  /// Of a key, or of the whole container: the server knows where to look.
  ItemPage read_at_once(const std::string& continuation, const CallTime& time) const {
    Call call = base_call();
    if (options_.partition_key) {
      call.headers.emplace_back(
          headers::kPartitionKey.text,
          key_header(*pipeline_, container_, *options_.partition_key, time.for_next_request()));
    }
    if (!continuation.empty()) call.headers.emplace_back(headers::kContinuation.text, continuation);
    Answer answer = pipeline_->send(call, time.for_next_request());
    std::string next(answer.header(headers::kContinuation.text));
    return item_page(std::move(answer), "Documents", std::move(next));
  }

  ItemPage read_ranges(const FeedRange& scope, const std::string& continuation,
                       const CallTime& time) const {
    auto position = continuation.empty() ? ItemListPosition::beginning_of(scope)
                                         : ItemListPosition::parse(continuation);
    for (int attempt = 1;; ++attempt) {
      const auto routing = pipeline_->routing(container_, time.for_next_request());
      auto cut = position;
      const PartitionKeyRange range = cut.begin_in(*routing);
      try {
        return read_range(range, std::move(cut), time);
      } catch (const CosmosException& failure) {
        if (!failure.is_gone() || attempt == kGoneMax) throw;
        pipeline_->forget_routing(container_, routing);
      }
      // At first at once: mostly the split is over, and only we did not know of it.
      time.pause(std::min(kGoneWaitMax, std::chrono::milliseconds(5 * (attempt - 1))));
    }
  }

  ItemPage read_range(const PartitionKeyRange& range, ItemListPosition position,
                      const CallTime& time) const {
    auto& piece = position.pieces.front();
    Call call = base_call();
    // With the rid, so that another container of the same name is not taken for this one.
    call.headers.emplace_back(headers::kPartitionKeyRangeId.text,
                              position.container_rid + "," + range.id);
    if (piece.range != range.range) {
      call.headers.emplace_back(headers::kReadKeyType.text, "EffectivePartitionKeyRange");
      call.headers.emplace_back(headers::kStartEpk.text, piece.range.min);
      call.headers.emplace_back(headers::kEndEpk.text, piece.range.max);
    }
    if (!piece.token.empty()) call.headers.emplace_back(headers::kContinuation.text, piece.token);
    Answer answer = pipeline_->send(call, time.for_next_request());
    piece.token = answer.header(headers::kContinuation.text);
    if (piece.token.empty()) position.pieces.erase(position.pieces.begin());
    return item_page(std::move(answer), "Documents",
                     position.pieces.empty() ? std::string() : position.to_string());
  }

  std::shared_ptr<Pipeline> pipeline_;
  std::string container_;
  std::optional<Query> query_;
  QueryOptions options_;
};

}  // namespace

ItemListPosition ItemListPosition::parse(std::string_view text) {
  ItemListPosition position;
  const auto body = json::Value::parse(text);
  if (body) {
    position.container_rid = body->member("Rid").string_or_empty();
    const json::Value list = body->member("Continuation");
    for (json::Reader reader(list); reader.next();) {
      const json::Value piece = reader.value();
      const json::Value range = piece.member("range");
      position.pieces.push_back(
          {{range.member("min").string_or_empty(), range.member("max").string_or_empty()},
           piece.member("token").string_or_empty()});
    }
  }
  const bool is_good = !position.container_rid.empty() && !position.pieces.empty() &&
                       std::ranges::all_of(position.pieces, [](const RangePosition& piece) {
                         return piece.range.min < piece.range.max;
                       });
  if (!is_good) {
    refuse_argument("The continuation is none of a list of documents: " + std::string(text));
  }
  return position;
}

std::string ItemListPosition::to_string() const {
  std::string text = R"({"V":2,"Rid":)";
  json::append_quoted(text, container_rid);
  text += R"(,"Continuation":[)";
  for (const RangePosition& piece : pieces) {
    if (text.back() != '[') text.push_back(',');
    text += R"({"token":)";
    if (piece.token.empty()) {
      text += "null";
    } else {
      json::append_quoted(text, piece.token);
    }
    text += R"(,"range":{"min":)";
    json::append_quoted(text, piece.range.min);
    text += R"(,"max":)";
    json::append_quoted(text, piece.range.max);
    text += "}}";
  }
  return text += "]}";
}

PartitionKeyRange ItemListPosition::begin_in(const RoutingMap& map) {
  if (container_rid.empty()) container_rid = map.container_rid();
  if (container_rid != map.container_rid()) {
    refuse_argument(
        "The list can't go on: its container was deleted, and another has the same name now.");
  }
  const RangePosition first = pieces.front();
  const auto ranges = map.overlapping(first.range);
  if (ranges.empty()) refuse_argument("The container has no such range of keys.");
  std::vector<RangePosition> parts;
  parts.reserve(ranges.size());
  for (const PartitionKeyRange& range : ranges) {
    parts.push_back(
        {{std::max(first.range.min, range.range.min), std::min(first.range.max, range.range.max)},
         first.token});
  }
  pieces.erase(pieces.begin());
  // Ranges that have not been begun may stay one piece behind the first, cut in their turn.
  if (first.token.empty() && parts.size() > 1) {
    parts[1].range.max = parts.back().range.max;
    parts.resize(2);
  }
  pieces.insert(pieces.begin(), parts.begin(), parts.end());
  return ranges.front();
}

ItemPages item_pages(std::shared_ptr<Pipeline> pipeline, std::string container,
                     std::optional<Query> query, const QueryOptions& options) {
  const ItemList list(std::move(pipeline), std::move(container), std::move(query), options);
  return {[list](const std::string& continuation) { return list.read(continuation); },
          options.continuation};
}

}  // namespace orrery::client
