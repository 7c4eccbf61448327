// One bound for the memory of all requests and answers under way, however many connections there
// are.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

namespace orrery::http {

/// Counts bytes. Takers give back what they have taken; see MemoryHold. Thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  /// False, and nothing is taken, when more than `ceiling` bytes would then be in use.
  [[nodiscard]] bool try_take(std::size_t bytes, std::size_t ceiling) {
    if (used_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= ceiling) return true;
    give_back(bytes);
    return false;
  }
  /// For memory that exists already and cannot be refused any more.
  void take(std::size_t bytes) { used_.fetch_add(bytes, std::memory_order_relaxed); }
  void give_back(std::size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  std::size_t bytes_max() const { return bytes_max_; }
  std::size_t used() const { return used_.load(std::memory_order_relaxed); }
  /// Little is left: clients that do not read their answers lose the usual patience.
  bool is_short() const { return used() > bytes_max_ / 4 * 3; }

 private:
  const std::size_t bytes_max_;
  std::atomic<std::size_t> used_{0};
};

/// The bytes of the budget that one connection holds. For one thread.
class MemoryHold {
 public:
  explicit MemoryHold(MemoryBudget& budget) : budget_(budget) {}
  ~MemoryHold() { hold(0); }
  MemoryHold(const MemoryHold&) = delete;
  MemoryHold& operator=(const MemoryHold&) = delete;

  /// Holds `bytes` from now on, instead of what it held. False, and nothing changes, when that
  /// takes the budget's use above `ceiling`. Holding less always succeeds.
  [[nodiscard]] bool try_hold(std::size_t bytes, std::size_t ceiling) {
    if (bytes > bytes_ && !budget_.try_take(bytes - bytes_, ceiling)) return false;
    if (bytes < bytes_) budget_.give_back(bytes_ - bytes);
    bytes_ = bytes;
    return true;
  }
  /// The same, but it always succeeds.
  void hold(std::size_t bytes) {
    if (bytes > bytes_) budget_.take(bytes - bytes_);
    if (bytes < bytes_) budget_.give_back(bytes_ - bytes);
    bytes_ = bytes;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  MemoryBudget& budget_;
  std::size_t bytes_ = 0;
};

/// Gives the memory of `text` back. Assigning an empty string does not: it keeps the old capacity.
inline void free_memory(std::string& text) { std::string().swap(text); }

}  // namespace orrery::http
