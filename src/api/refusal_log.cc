#include "api/refusal_log.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/diagnostics.h"

namespace orrery::api {
namespace {

constexpr std::size_t kTargetMax = 200;
constexpr std::size_t kReasonMax = 300;

/// Clients write into these: a line must stay a line, and a terminal a terminal.
std::string printable(std::string_view text, std::size_t size_max) {
  std::string out;
  for (const char c : text.substr(0, size_max)) {
    out.push_back(c >= ' ' && c != 0x7f ? c : '?');
  }
  if (text.size() > size_max) out += "...";
  return out;
}

}  // namespace

RefusalLog::RefusalLog(const Clock& clock, Write write)
    : clock_(clock), write_(write ? std::move(write) : [](const std::string& line) {
        diagnostics::warning("{}", line);
      }) {}

RefusalLog::~RefusalLog() { tell_of_counted(); }

void RefusalLog::add(const Entry& entry) {
  const std::lock_guard lock(mutex_);
  if (const auto second = clock_.unix_seconds(); second != second_) {
    second_ = second;
    lines_ = 0;
    tell_of_counted();
  }
  if (lines_ == kLinesPerSecond) {
    ++counted_;
    return;
  }
  ++lines_;
  const auto target = entry.target.substr(0, entry.target.find('?'));
  std::string line = fmt::format("refused {}", entry.client);
  if (!entry.method.empty()) {
    line += fmt::format(" {} {}", printable(entry.method, 16), printable(target, kTargetMax));
  }
  line += fmt::format(": {}", entry.status);
  if (entry.substatus != 0) line += fmt::format("/{}", entry.substatus);
  line += fmt::format(" {} (activity {})", printable(entry.reason, kReasonMax), entry.activity_id);
  write_(line);
}

void RefusalLog::tell_of_counted() {
  if (counted_ == 0) return;
  write_(fmt::format("refused {} more requests that had no line of their own",
                     std::exchange(counted_, 0)));
}

}  // namespace orrery::api
