#include "orrery/response.h"

#include <fmt/format.h>

namespace orrery::client {

std::string Diagnostics::to_string() const {
  std::string line =
      fmt::format("{} attempt{} in {:.1f} ms", attempts.size(), attempts.size() == 1 ? "" : "s",
                  static_cast<double>(duration.count()) / 1000);
  for (const Attempt& attempt : attempts) {
    line += fmt::format("; {} ", attempt.endpoint);
    if (attempt.status == 0) {
      line += fmt::format("no answer ({})", attempt.failure);
    } else if (attempt.sub_status == 0) {
      line += fmt::format("{}", attempt.status);
    } else {
      line += fmt::format("{}/{}", attempt.status, attempt.sub_status);
    }
    line += fmt::format(" after {:.1f} ms, activity {}",
                        static_cast<double>(attempt.duration.count()) / 1000, attempt.activity_id);
  }
  return line;
}

std::string_view ResponseInfo::header(std::string_view name) const {
  for (const auto& [each, value] : headers) {
    if (each == name) return value;
  }
  return {};
}

}  // namespace orrery::client
