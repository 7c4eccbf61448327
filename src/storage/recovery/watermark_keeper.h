// WatermarkKeeper: writes the watermark from a thread of its own, never in the path of a commit.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "base/result.h"
#include "storage/recovery/watermark.h"

namespace orrery::storage {

class WatermarkKeeper {
 public:
  /// Reads the watermark of that data directory. Blocks.
  WatermarkKeeper(const std::filesystem::path& data_directory, bool is_strict);
  ~WatermarkKeeper();

  /// The mark that was found or written last. Thread-safe.
  std::optional<SyncedMark> mark() const;
  /// Whether there is a watermark that cannot be read.
  bool is_damaged() const { return watermark_.is_damaged(); }

  /// Writes a mark at once and then whenever there is something new, about once a second, until
  /// stop(), which waits.
  void start();
  void stop();

  /// The operation and all before it are on stable storage. Any thread; cheap.
  void note_synced(std::uint64_t operation) { synced_.store(operation, std::memory_order_relaxed); }
  std::uint64_t synced() const { return synced_.load(std::memory_order_relaxed); }
  /// Tables were added or replaced, and so the MANIFEST has grown. Any thread; cheap.
  void note_tables() { tables_changed_.store(true, std::memory_order_relaxed); }

  /// Writes a mark now, if there is something new. Blocks.
  Result<> write();

  /// Notes that acknowledged writes are about to be given up. From then on no other mark is
  /// written until the loss is settled: a start that ends in between must be noticed.
  Result<> begin_loss();
  Result<> settle_loss();

 private:
  Result<> write_locked();
  void run();

  const std::filesystem::path store_;
  const bool is_strict_;
  std::atomic<std::uint64_t> synced_{0};
  std::atomic<bool> tables_changed_{true};

  mutable std::mutex mutex_;
  Watermark watermark_;  // Guarded by mutex_, and so are the next two.
  ManifestExtent manifest_;
  bool is_loss_pending_ = false;

  std::mutex stop_mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // Guarded by stop_mutex_.
  std::thread thread_;
};

}  // namespace orrery::storage
