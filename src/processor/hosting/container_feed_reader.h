// The feed of a container of a server.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/thread_pool.hpp>

#include "client/exchange/pipeline.h"
#include "orrery/container.h"
#include "processor/hosting/feed_reader.h"

namespace orrery::processor {

/// Reads wait without a thread of their own: a host may have thousands under way. Thread-safe.
class ContainerFeedReader final : public FeedReader {
 public:
  /// Lists of ranges are asked for in pages of so many.
  explicit ContainerFeedReader(client::Container container, int ranges_page_size = 100);

  asio::awaitable<FeedAnswer> read(FeedRequest request) override;
  Async<std::vector<client::PartitionKeyRange>> ranges() override;
  Async<std::optional<PendingChanges>> pending(FeedRequest request) override;
  Async<Identity> identity() override;
  Async<std::vector<std::string>> partition_key_paths() override;

 private:
  client::Call feed_call(const FeedRequest& request, std::string method) const;

  client::Container container_;
  int ranges_page_size_;
  asio::thread_pool pool_;  // For what blocks, and is rare.
};

/// A refused request as an answer for the feed loop. Never throws.
FeedAnswer feed_refusal(std::exception_ptr failure);

}  // namespace orrery::processor
