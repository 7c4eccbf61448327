#include "cli/key_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>

#include <fmt/format.h>

#include "base/trim.h"
#include "protocol/auth/account_key.h"

namespace orrery::cli {
namespace {

/// Where `openssl` and `base64` begin a new line.
constexpr std::array<std::size_t, 2> kWrapColumns = {64, 76};

struct Line {
  std::size_t number = 0;
  std::string text;
};

bool may_be_wrapped(const Line& line) {
  return std::ranges::count(kWrapColumns, line.text.size()) > 0 && !line.text.ends_with('=');
}

/// Lines that follow each other without an empty one or a comment in between.
Result<> check_block(const std::string& path, std::span<const Line> lines) {
  for (const Line& line : lines) {
    const bool is_last = &line == &lines.back();
    const auto whole = check_account_key(line.text);
    if (whole && (is_last || !may_be_wrapped(line))) continue;
    if (lines.size() > 1) {
      return Error(
          ErrorCode::BadRequest,
          fmt::format("lines {} to {} of the key file {} look like one key that is broken over "
                      "several lines: write it on one line ('orrery keygen' makes such a key), or "
                      "put an empty line between two keys",
                      lines.front().number, lines.back().number, path));
    }
    return Error(ErrorCode::BadRequest, fmt::format("line {} of the key file {}: {}", line.number,
                                                    path, whole.error().message()));
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> read_key_file(const std::string& path) {
  std::ifstream in(path);
  if (!in) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("cannot read the key file {}: {}", path, std::strerror(errno)));
  }
  std::vector<std::string> keys;
  std::vector<Line> block;
  const auto end_block = [&]() -> Result<> {
    ORRERY_TRY(check_block(path, block));
    for (Line& line : block) keys.push_back(std::move(line.text));
    block.clear();
    return {};
  };
  std::string text;
  for (std::size_t number = 1; std::getline(in, text); ++number) {
    text = std::string(trimmed(text, " \t\r"));
    if (text.empty() || text.front() == '#') {
      ORRERY_TRY(end_block());
    } else {
      block.push_back({number, text});
    }
  }
  if (!in.eof()) {
    return Error(ErrorCode::Unavailable, fmt::format("cannot read the key file {}", path));
  }
  ORRERY_TRY(end_block());
  if (keys.empty()) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("the key file {} has no key in it; 'orrery keygen' makes one", path));
  }
  return keys;
}

bool is_readable_by_others(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && (status.st_mode & S_IROTH) != 0;
}

}  // namespace orrery::cli
