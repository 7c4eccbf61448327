// SuspendedQueries: queries that have to see every document before their first row, and whose time
// was up before they had. Their clients come back for the rest.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

namespace orrery::executor {

/// The state of a query between two requests.
class SuspendedQuery {
 public:
  virtual ~SuspendedQuery() = default;
  virtual std::size_t memory() const = 0;
};

/// Keeps a few, for a short time: they hold memory, and a snapshot of the store. A client that
/// comes back too late begins again. Thread-safe.
class SuspendedQueries {
 public:
  static constexpr std::size_t kCountMax = 32;
  static constexpr std::size_t kMemoryMax = std::size_t{256} << 20;
  static constexpr std::chrono::seconds kAgeMax{30};

  /// `pool` is where those that nobody comes for are let go.
  explicit SuspendedQueries(boost::asio::thread_pool& pool) : timer_(pool) {}
  ~SuspendedQueries() { stop(); }

  /// The number to take it by, never 0. `key` tells what it was for, `client` for whom: where there
  /// are too many, those go first of which one client has most.
  std::uint64_t keep(std::unique_ptr<SuspendedQuery> query, std::string key,
                     std::uint64_t client = 0);
  /// Null when it is no longer there, or was kept for something else.
  std::unique_ptr<SuspendedQuery> take(std::uint64_t number, std::string_view key);
  /// Lets all of them go.
  void stop();

 private:
  struct Entry {
    std::uint64_t number;
    std::string key;
    std::uint64_t client;
    std::unique_ptr<SuspendedQuery> query;
    std::size_t memory;
    std::chrono::steady_clock::time_point since;
  };

  std::list<Entry> take_surplus();
  std::list<Entry>::iterator oldest_of_greediest(bool by_memory);
  void wait_for_oldest();
  void let_old_ones_go();

  std::mutex mutex_;
  std::list<Entry> entries_;  // Oldest first. Guarded by mutex_, as are the next two.
  bool stopped_ = false;
  boost::asio::steady_timer timer_;
};

}  // namespace orrery::executor
