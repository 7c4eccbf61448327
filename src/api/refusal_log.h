// A trace of requests that were refused, so that an operator can tell who knocks and why it is not
// let in.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace orrery::api {

/// Writes a line for each, a few in a second; the rest are counted, and the next line says how
/// many there were. Lines hold nothing secret, and nothing that could be taken for another line.
/// Thread-safe.
class RefusalLog {
 public:
  struct Entry {
    std::string_view client;  ///< address and port
    std::string_view method;  ///< empty, as the target, when it is not known
    std::string_view target;  ///< its query is left out
    int status = 0;
    int substatus = 0;
    std::string_view reason;
    std::string_view activity_id;
  };
  using Write = std::function<void(const std::string& line)>;

  static constexpr std::uint32_t kLinesPerSecond = 10;

  /// `write` goes to the diagnostics unless a test wants to see it.
  explicit RefusalLog(const Clock& clock, Write write = {});
  /// Tells of those that were only counted.
  ~RefusalLog();
  RefusalLog(const RefusalLog&) = delete;
  RefusalLog& operator=(const RefusalLog&) = delete;

  void add(const Entry& entry);

 private:
  void tell_of_counted();

  const Clock& clock_;
  const Write write_;
  std::mutex mutex_;
  // Guarded by mutex_.
  UnixSeconds second_ = 0;
  std::uint32_t lines_ = 0;    // in that second
  std::uint64_t counted_ = 0;  // since the last line
};

}  // namespace orrery::api
