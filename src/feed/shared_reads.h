// SharedReads: what one reader reads at the end of a log, all who ask for the same get.
//
// When a head moves, everybody who waited for it asks for the same page. It is read once, made into
// the text that is sent once, and shared.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/async.h"
#include "base/result.h"

namespace orrery::feed {

/// Something that was read, with the moment at which it was true. A moment counts commits: the head
/// that was read, or of several logs the sum of their heads. It never falls.
struct SharedRead {
  std::uint64_t moment = 0;
  std::size_t bytes = 0;              ///< what it takes to keep it
  std::shared_ptr<const void> value;  ///< shared by all who asked
};

struct SharedReadLimits {
  std::size_t entries_max = 64;
  std::size_t entry_bytes_max = 256 << 10;  ///< what is larger is shared, but not kept
};

/// Plain counters, published by server/metrics.cc.
struct SharedReadStats {
  std::atomic<std::uint64_t> reads{0};   ///< from the store
  std::atomic<std::uint64_t> shared{0};  ///< answered by a read of somebody else's
};

/// Thread-safe. It and the event loops of those who ask must outlive what it has posted to the
/// pool: an asker may go on, and be done, while the pool's thread is still inside the post() that
/// resumed it. So join the pool before a loop is destroyed, as Server::stop does.
class SharedReads {
 public:
  /// Reads what the key says, from a snapshot that is taken when it is called. May block.
  using Read = std::move_only_function<Result<SharedRead>()>;

  explicit SharedReads(boost::asio::thread_pool& pool, SharedReadLimits limits = {})
      : pool_(pool), limits_(limits) {}

  /// The value of `key`, as it was at `now` or later. The key must hold everything that makes a
  /// difference to what is read, apart from the moment.
  /// `other`: the lane that reads it, where it is not the usual pool. Lives as long as the call.
  template <typename Value>
  Async<std::shared_ptr<const Value>> get(std::string key, std::uint64_t now, Read read,
                                          const BackgroundPool::Lane* other = nullptr) {
    ORRERY_CO_TRY(auto found, co_await get_any(std::move(key), now, std::move(read), other));
    co_return std::static_pointer_cast<const Value>(std::move(found));
  }

  const SharedReadStats& stats() const { return stats_; }

 private:
  using Outcome = Result<std::shared_ptr<const void>>;
  using Resume = std::move_only_function<void(Outcome)>;
  /// Those who asked on one event loop.
  struct Askers {
    boost::asio::any_io_executor executor;
    std::vector<Resume> resume;
    Outcome outcome;
    std::size_t resumed = 0;
  };
  /// A read that is under way.
  struct Flight {
    std::uint64_t begun_at;                       // It will be at least as new as this.
    std::vector<std::shared_ptr<Askers>> askers;  // Shared with what is posted to their loops.
  };
  struct Entry {
    std::string key;
    SharedRead read;                 // Its value is null before the first one has ended.
    std::shared_ptr<Flight> flight;  // The newest, if one is under way. Shared with the pool.
  };
  using Entries = std::list<Entry>;

  Async<std::shared_ptr<const void>> get_any(std::string key, std::uint64_t now, Read read,
                                             const BackgroundPool::Lane* other);
  std::shared_ptr<const void> find(std::string_view key, std::uint64_t now);
  void ask(std::string key, std::uint64_t now, Read read, const BackgroundPool::Lane* other,
           const boost::asio::any_io_executor& executor, Resume resume);
  void finish(const std::string& key, const std::shared_ptr<Flight>& flight,
              Result<SharedRead> read);
  static void join(Flight& flight, const boost::asio::any_io_executor& executor, Resume resume);
  static void resume_some(std::shared_ptr<Askers> askers);
  Entry& entry_of(std::string key);
  void trim();

  boost::asio::thread_pool& pool_;
  const SharedReadLimits limits_;
  SharedReadStats stats_;
  std::mutex mutex_;
  Entries entries_;  // Most recently used first. Guarded by mutex_, as is the next.
  std::unordered_map<std::string_view, Entries::iterator> by_key_;
};

}  // namespace orrery::feed
