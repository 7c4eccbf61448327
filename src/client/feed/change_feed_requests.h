// FeedRequests: the change feed of a container as requests, each to the range that has a slice now.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/exchange/call_time.h"
#include "client/exchange/pipeline.h"
#include "client/feed/change_feed_continuation.h"

namespace orrery::client {

/// The options of a reader, besides its position.
struct FeedWishes {
  ChangeFeedMode mode = ChangeFeedMode::LatestVersion;
  std::optional<PartitionKey> key{};
  std::optional<std::uint32_t> page_size{};
  std::string filter{};
  std::string select{};
};

/// A slice that knows which range serves it.
struct PlacedSlice : FeedSlice {
  RoutingMapPtr placed_by{};  ///< the picture of ranges that the rest is about
  std::string range_id{};
  bool is_part = false;  ///< not all of that range
  /// How often in a row the server has said that the range is another one.
  int misplaced_count = 0;
};

/// For one thread. Its requests belong to one call, until begin_call() begins another.
class FeedRequests {
 public:
  FeedRequests(std::shared_ptr<Pipeline> pipeline, std::string link, RequestOptions options,
               FeedWishes wishes);

  const FeedWishes& wishes() const { return wishes_; }
  const std::string& link() const { return link_; }

  /// The time that a call may take begins.
  void begin_call() { time_.emplace(options_); }
  const CallTime& time() const { return *time_; }
  /// For a request of this call: its options with the time that is left of it. Throws
  /// CosmosException (Timeout, Cancelled) when there is none.
  RequestOptions options() const { return time_->for_next_request(); }
  /// For a request that may outlast the call.
  const RequestOptions& lasting_options() const { return options_; }

  Pipeline& pipeline() const { return *pipeline_; }

  /// For readers that go on where another one was: the rid of its container.
  void expect_container(std::string rid);
  /// The ranges as they are known; asks for them where they are not. Throws CosmosException when
  /// another container has the name now: Argument for one that was expected, 404 for one that was
  /// read.
  const RoutingMapPtr& ranges();

  /// The slices to read when `wanted`, or all, or the wishes' key is wanted. Throws CosmosException
  /// (Argument) for a key that the container can't have.
  std::vector<PlacedSlice> slices(const std::optional<FeedRange>& wanted, const std::string& etag,
                                  std::optional<UnixSeconds> since);

  /// Whether the slice was placed by what is known of ranges now.
  bool is_placed(const PlacedSlice& slice) { return slice.placed_by == ranges(); }
  /// The slice in the range that serves it now; where ranges were split, a piece for each, all as
  /// far as it was.
  std::vector<PlacedSlice> place(const PlacedSlice& slice);

  /// The request for what comes after the slice's position. It must have been placed.
  Call page_call(const PlacedSlice& slice, std::optional<std::chrono::seconds> wait) const;
  /// The request for how much comes after it.
  Call lag_call(const PlacedSlice& slice) const;

  /// Whether the server means by it that `slice` is served elsewhere now. Then the next place()
  /// looks again. False also when that has been so too often in a row.
  bool was_misplaced(PlacedSlice& slice, const CosmosException& failure);
  /// How long to leave a slice alone that was misplaced: not at all, unless that has not helped.
  static std::chrono::milliseconds pause_of(const PlacedSlice& slice);
  /// Waits for that long. Throws CosmosException (Timeout, Cancelled) when the call shall end.
  void pause(const PlacedSlice& slice) const { time_->pause(pause_of(slice)); }

 private:
  bool reads_whole_key() const;
  [[noreturn]] void refuse_container(const std::string& found_rid) const;
  Call call(const PlacedSlice& slice, std::string method) const;

  std::shared_ptr<Pipeline> pipeline_;  // Shared with the client's handles.
  std::string link_;
  RequestOptions options_;
  std::optional<CallTime> time_;  // Of the call that is under way; begins with this.
  FeedWishes wishes_;
  std::size_t key_size_ = 0;
  std::string rid_;  ///< of the container; empty until it is known
  bool rid_was_given_ = false;
  RoutingMapPtr ranges_;
};

}  // namespace orrery::client
