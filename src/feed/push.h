// Push: what readers of the change feed share who do not poll, but wait for a change or have
// changes streamed to them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include <boost/asio/thread_pool.hpp>

#include "feed/shared_reads.h"
#include "partition/read/head_watch.h"

namespace orrery::feed {

/// Plain counters, published by server/metrics.cc.
struct PushStats {
  std::atomic<std::uint64_t> streams{0};  ///< open now
  std::atomic<std::uint64_t> events{0};   ///< chunks with changes in them, sent to streams
  std::atomic<std::uint64_t> polls{0};    ///< requests that waited
  std::atomic<std::uint64_t> refused{0};  ///< could neither wait nor be streamed to
};

/// One for the server. Thread-safe.
struct Push {
  /// A stream that has nothing to say says so after this.
  static constexpr std::chrono::seconds kHeartbeat{15};

  explicit Push(boost::asio::thread_pool& pool,
                std::size_t readers_max = partition::WaitingRoom::kReadersMax,
                std::chrono::milliseconds silence_max = kHeartbeat)
      : room(readers_max), reads(pool), heartbeat(silence_max) {}

  partition::WaitingRoom room;
  SharedReads reads;
  const std::chrono::milliseconds heartbeat;
  PushStats stats;
};

}  // namespace orrery::feed
