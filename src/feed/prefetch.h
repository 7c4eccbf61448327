// Prefetcher: reads the next pages of a feed while the client is still busy with this one.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/background_pool.h"
#include "base/result.h"
#include "feed/page.h"
#include "partition/partition.h"
#include "protocol/tokens/continuation.h"

namespace orrery::feed {

class PrefetchChain;

/// Keeps the partitions of a page alive, and tells one state of a container from another.
using Owner = std::shared_ptr<const void>;

/// One page of documents, ready to be sent.
struct PreparedPage {
  std::string body;
  std::size_t count = 0;
  std::optional<ReadFeedPosition> next;
  /// Of the change feed, instead of `body` and `next`.
  Page change;
  UnixSeconds resolved_at_head = 0;
  std::shared_ptr<PrefetchChain> ahead;  ///< who reads on, when this page was read ahead
  /// Each partition that was read, with its head before that.
  std::vector<std::pair<const partition::Partition*, Lsn>> heads;
};

/// Clients that read a container from end to end ask for page after page: the next one is read
/// while this one is on its way. It is used only if no range has changed since; otherwise it could
/// hide a write that the client has been told of.
///
/// Thread-safe. Keeps a few pages at the most, and none for long.
class Prefetcher {
 public:
  using Read = std::move_only_function<Result<PreparedPage>()>;

  /// Begins to read on `pool` what the request described by `key` will ask for. `container` is kept
  /// alive for it.
  void begin(BackgroundPool& pool, std::string key, Owner container, Read read);

  /// The page that was read ahead for `key`, if it is still what a read would find now. May block
  /// until it has been read.
  std::optional<PreparedPage> take(std::string_view key, const Owner& container);

 private:
  /// One read: by the pool or by the request that needs it, whichever comes first.
  class Reading {
   public:
    explicit Reading(Read read) : task_(std::move(read)), page_(task_.get_future()) {}
    /// Does it, unless somebody else has begun to.
    void run();
    /// Waits until it is read. Call it once.
    Result<PreparedPage> page() { return page_.get(); }

   private:
    std::atomic_flag begun_;
    std::packaged_task<Result<PreparedPage>()> task_;
    std::future<Result<PreparedPage>> page_;
  };
  struct Entry {
    std::string key;
    Owner container;
    std::shared_ptr<Reading> reading;  // Shared with the pool.
    std::chrono::steady_clock::time_point begun;
  };

  std::mutex mutex_;
  std::list<Entry> entries_;  // Oldest first. Guarded by mutex_.
};

/// Reads on for a client that takes page after page, some pages before it asks for them: as soon as
/// one has been read the next one is begun, whatever the client is doing. Shared by the pages and
/// by the read that is under way. Thread-safe.
class PrefetchChain : public std::enable_shared_from_this<PrefetchChain> {
 public:
  /// The page to prefetch next: the key under which it will be asked for, and how it is read.
  struct Next {
    std::string key;
    Prefetcher::Read read;
  };
  /// Nothing when there is no more, or it is not worth it.
  using Find = std::function<std::optional<Next>(const PreparedPage&)>;

  PrefetchChain(Prefetcher& pages, BackgroundPool& pool, Owner container, Find find)
      : pages_(pages), pool_(pool), container_(std::move(container)), find_(std::move(find)) {}

  /// Goes on after this page.
  void after(const PreparedPage& page);
  /// One that was read ahead has been taken.
  void page_taken();

 private:
  static constexpr int kPagesAhead = 2;

  void advance();
  Result<PreparedPage> read(Prefetcher::Read& read);

  Prefetcher& pages_;
  BackgroundPool& pool_;
  const Owner container_;
  const Find find_;
  std::mutex mutex_;
  std::optional<Next> next_;  // Follows the last one read. Guarded by mutex_, as are
  int pages_ahead_ = 0;       // the number of pages begun and not taken,
  bool reading_ = false;      // and whether one is being read.
};

}  // namespace orrery::feed
