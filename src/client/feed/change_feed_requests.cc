#include "client/feed/change_feed_requests.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "client/exchange/refusal.h"
#include "client/handles/resource.h"
#include "orrery/exception.h"
#include "protocol/keys/partition_key.h"
#include "protocol/wire/headers.h"
#include "protocol/wire/http_date.h"
#include "protocol/wire/resource_path.h"

namespace orrery::client {
namespace {

constexpr int kGone = 410;
constexpr int kNotFound = 404;
constexpr int kBadRequest = 400;
constexpr int kSessionNotAvailable = 1002;  // of a 404
constexpr int kOtherContainer = 1024;       // of a 400: the name belongs to another one now
constexpr int kOwnerNotFound = 1003;        // of a 404
constexpr int kMisplacedMax = 16;           // with their pauses about five seconds in all
constexpr std::chrono::milliseconds kPauseMax{500};
constexpr std::string_view kWireFormat = "2021-09-15";
/// "Applies If-Modified-Since on every page": times do not rise with positions after a merge.
constexpr std::string_view kTimeAfterMergeCapability = "2";

void add(Call& call, HeaderName name, std::string value) {
  call.headers.emplace_back(name.text, std::move(value));
}

}  // namespace

FeedRequests::FeedRequests(std::shared_ptr<Pipeline> pipeline, std::string link,
                           RequestOptions options, FeedWishes wishes)
    : pipeline_(std::move(pipeline)),
      link_(std::move(link)),
      options_(std::move(options)),
      wishes_(std::move(wishes)) {
  begin_call();
  if (!wishes_.key) return;
  const auto key = orrery::PartitionKey::parse(wishes_.key->json());
  if (!key) refuse_argument(key.error().message());
  key_size_ = key->size();
}

const RoutingMapPtr& FeedRequests::ranges() {
  if (ranges_) return ranges_;
  RoutingMapPtr found = pipeline_->routing(link_, options());
  if (!rid_.empty() && found->container_rid() != rid_) {
    // The cached ranges may be of a container that is gone.
    pipeline_->forget_routing(link_, found);
    found = pipeline_->routing(link_, options());
    if (found->container_rid() != rid_) refuse_container(found->container_rid());
  }
  rid_ = found->container_rid();
  ranges_ = std::move(found);
  return ranges_;
}

void FeedRequests::expect_container(std::string rid) {
  rid_ = std::move(rid);
  rid_was_given_ = true;
}

void FeedRequests::refuse_container(const std::string& found_rid) const {
  if (rid_was_given_) {
    refuse_argument(fmt::format(
        "The continuation is of another container: its rid is {}, but that of {} is {}. It was "
        "perhaps deleted and made again; then begin anew.",
        rid_, link_, found_rid));
  }
  CosmosException::Details details;
  details.status = kNotFound;
  details.sub_status = kOwnerNotFound;
  throw CosmosException(
      fmt::format("The container {} that was read is gone; another has its name now.", link_),
      std::move(details));
}

bool FeedRequests::reads_whole_key() const {
  return wishes_.key && key_size_ >= ranges_->definition().paths.size();
}

std::vector<PlacedSlice> FeedRequests::slices(const std::optional<FeedRange>& wanted,
                                              const std::string& etag,
                                              std::optional<UnixSeconds> since) {
  const RoutingMap& map = *ranges();
  PlacedSlice all;
  if (wishes_.key) {
    if (key_size_ == 0 && !map.definition().paths.empty()) {
      refuse_argument("The partition key has no components.");
    }
    all.range = map.slice_of(*wishes_.key);
  } else if (wanted) {
    all.range = checked_range(*wanted);
  }
  all.etag = etag;
  all.since = since;
  return place(all);
}

std::vector<PlacedSlice> FeedRequests::place(const PlacedSlice& slice) {
  const RoutingMapPtr map = ranges();
  std::vector<PlacedSlice> pieces;
  if (reads_whole_key()) {
    pieces.push_back(slice);  // The server finds the range of a key by itself.
    pieces.front().placed_by = map;
    return pieces;
  }
  const std::vector<PartitionKeyRange> owners = map->overlapping(slice.range);
  if (owners.empty()) {
    refuse_argument(fmt::format("'{}' to '{}' lies in no range of {}.", slice.range.min,
                                slice.range.max, link_));
  }
  for (const PartitionKeyRange& owner : owners) {
    PlacedSlice piece = slice;
    piece.range.min = std::max(slice.range.min, owner.range.min);
    piece.range.max = std::min(slice.range.max, owner.range.max);
    piece.placed_by = map;
    piece.range_id = owner.id;
    piece.is_part = piece.range != owner.range;
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

Call FeedRequests::call(const PlacedSlice& slice, std::string method) const {
  Call call{.method = std::move(method), .type = "docs", .link = link_, .list = true};
  call.container = link_;
  if (wishes_.mode == ChangeFeedMode::AllVersionsAndDeletes) {
    add(call, headers::kAIm, "Full-Fidelity Feed");
    add(call, headers::kChangeFeedWireFormatVersion, std::string(kWireFormat));
  } else {
    add(call, headers::kAIm, "Incremental Feed");
  }
  // Positions of a container mean nothing to another one of its name.
  add(call, headers::kIntendedCollectionRid, rid_);
  if (reads_whole_key()) {
    add(call, headers::kPartitionKey, wishes_.key->json());
  } else {
    add(call, headers::kPartitionKeyRangeId, slice.range_id);
    if (slice.is_part) {
      if (!slice.range.min.empty()) add(call, headers::kStartEpk, slice.range.min);
      add(call, headers::kEndEpk, slice.range.max);
      add(call, headers::kReadKeyType, "EffectivePartitionKeyRange");
    }
  }
  if (!slice.etag.empty()) add(call, headers::kIfNoneMatch, slice.etag);
  if (!wishes_.filter.empty()) add(call, headers::kFeedFilter, percent_encode_path(wishes_.filter));
  if (!wishes_.select.empty()) add(call, headers::kFeedSelect, percent_encode_path(wishes_.select));
  return call;
}

Call FeedRequests::page_call(const PlacedSlice& slice,
                             std::optional<std::chrono::seconds> wait) const {
  Call page = call(slice, "GET");
  // -1 lets the server fill a page up to what it likes to send at once, which is how one catches
  // up fastest.
  add(page, headers::kMaxItemCount, wishes_.page_size ? std::to_string(*wishes_.page_size) : "-1");
  if (slice.since) {
    add(page, headers::kIfModifiedSince, format_http_date(*slice.since));
    add(page, headers::kSdkSupportedCapabilities, std::string(kTimeAfterMergeCapability));
  }
  if (wait) add(page, headers::kPrefer, fmt::format("wait={}", wait->count()));
  return page;
}

Call FeedRequests::lag_call(const PlacedSlice& slice) const { return call(slice, "HEAD"); }

bool FeedRequests::was_misplaced(PlacedSlice& slice, const CosmosException& failure) {
  const int status = failure.status();
  const int sub_status = failure.sub_status();
  const bool misplaced = status == kGone ||
                         (status == kNotFound && sub_status != kSessionNotAvailable) ||
                         (status == kBadRequest && sub_status == kOtherContainer);
  if (!misplaced || ++slice.misplaced_count > kMisplacedMax) return false;
  if (slice.placed_by == ranges_) {
    // Nobody has looked since.
    pipeline_->forget_routing(link_, ranges_);
    ranges_ = nullptr;
  }
  slice.placed_by = nullptr;
  return true;
}

std::chrono::milliseconds FeedRequests::pause_of(const PlacedSlice& slice) {
  // After the first refusal a new look at the ranges is enough. More of them mean that a split or
  // merge is just being completed.
  if (slice.misplaced_count <= 1) return {};
  const int doublings = std::min(slice.misplaced_count - 2, 7);
  return std::min(std::chrono::milliseconds(10 << doublings), kPauseMax);
}

}  // namespace orrery::client
