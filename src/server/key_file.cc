#include "server/key_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/file_descriptor.h"
#include "base/trim.h"
#include "protocol/auth/account_key.h"

namespace orrery::server {
namespace {

/// Where `openssl` and `base64` begin a new line.
constexpr std::array<std::size_t, 2> kWrapColumns = {64, 76};

struct Line {
  std::size_t number = 0;  // From 1.
  NamedKey key;
};

bool may_be_wrapped(const Line& line) {
  const std::string& text = line.key.text;
  return std::ranges::count(kWrapColumns, text.size()) > 0 && !text.ends_with('=');
}

/// Lines that follow each other without an empty one, a comment or a slot in between.
Result<> check_block(const std::string& path, std::span<const Line> lines) {
  for (const Line& line : lines) {
    const bool is_last = &line == &lines.back();
    const auto whole = check_account_key(line.key.text);
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

Result<std::vector<std::string>> read_lines(const std::string& path) {
  std::ifstream in(path);
  if (!in) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("cannot read the key file {}: {}", path, std::strerror(errno)));
  }
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
  if (!in.eof()) {
    return Error(ErrorCode::Unavailable, fmt::format("cannot read the key file {}", path));
  }
  return lines;
}

/// "primary: KEY", or only the key.
Result<NamedKey> parse_line(const std::string& path, std::size_t number, std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return NamedKey{"", std::string(text)};
  const std::string_view slot = trimmed(text.substr(0, colon), " \t");
  if (std::ranges::find(kKeySlots, slot) == kKeySlots.end()) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("line {} of the key file {}: there is no slot '{}'; there are {}",
                             number, path, slot, fmt::join(kKeySlots, ", ")));
  }
  return NamedKey{std::string(slot), std::string(trimmed(text.substr(colon + 1), " \t"))};
}

Result<std::vector<Line>> parse_lines(const std::string& path, std::span<const std::string> texts) {
  std::vector<Line> lines;
  std::size_t block = 0;  // Where the block at hand begins.
  const auto end_block = [&]() -> Result<> {
    ORRERY_TRY(check_block(path, std::span(lines).subspan(block)));
    block = lines.size();
    return {};
  };
  for (std::size_t number = 1; number <= texts.size(); ++number) {
    const std::string_view text = trimmed(texts[number - 1], " \t\r");
    if (text.empty() || text.front() == '#') {
      ORRERY_TRY(end_block());
      continue;
    }
    ORRERY_TRY(auto key, parse_line(path, number, text));
    if (!key.slot.empty()) {
      ORRERY_TRY(end_block());
      if (std::ranges::any_of(lines, [&](const Line& line) { return line.key.slot == key.slot; })) {
        return Error(ErrorCode::BadRequest,
                     fmt::format("line {} of the key file {}: there is another {} key above",
                                 number, path, key.slot));
      }
    }
    lines.push_back({number, std::move(key)});
  }
  ORRERY_TRY(end_block());
  const auto is_read_write = [](const Line& line) { return !is_read_only_slot(line.key.slot); };
  if (std::ranges::none_of(lines, is_read_write)) {
    return Error(
        ErrorCode::BadRequest,
        fmt::format("the key file {} has no read-write key in it; 'orrery keygen' makes one",
                    path));
  }
  return lines;
}

Error cannot_write(const std::string& path) {
  return Error(ErrorCode::Unavailable,
               fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

/// A renamed file is lost in a power failure until its directory is on the disk.
bool sync_directory_of(const std::filesystem::path& path) {
  const auto parent = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const FileDescriptor directory(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return directory.is_open() && ::fsync(directory.number()) == 0;
}

/// In place of a file that is there, for its owner, and for its group to read if that may: a
/// service reads keys that belong to root through its group.
Result<> replace_file(const std::string& path, const std::string& text) {
  struct stat before{};
  if (::stat(path.c_str(), &before) != 0) return cannot_write(path);
  const std::string fresh = path + ".new";
  ::unlink(fresh.c_str());
  FileDescriptor file(::open(fresh.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
  if (!file.is_open()) return cannot_write(fresh);
  const bool is_owned = (before.st_uid == ::geteuid() && before.st_gid == ::getegid()) ||
                        ::fchown(file.number(), before.st_uid, before.st_gid) == 0;
  const bool is_replaced =
      is_owned && ::fchmod(file.number(), 0600 | (before.st_mode & S_IRGRP)) == 0 &&
      ::write(file.number(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(file.number()) == 0 && ::rename(fresh.c_str(), path.c_str()) == 0;
  if (is_replaced && sync_directory_of(path)) return {};
  const Error error = cannot_write(is_replaced ? path : fresh);
  ::unlink(fresh.c_str());
  return error;
}

}  // namespace

Result<std::vector<NamedKey>> read_key_file(const std::string& path) {
  ORRERY_TRY(const auto texts, read_lines(path));
  ORRERY_TRY(auto lines, parse_lines(path, texts));
  std::vector<NamedKey> keys;
  for (Line& line : lines) keys.push_back(std::move(line.key));
  return keys;
}

void name_keys(std::vector<NamedKey>& keys) {
  const auto is_taken = [&](const std::string& slot) {
    return std::ranges::find(keys, slot, &NamedKey::slot) != keys.end();
  };
  std::size_t count = 0;
  const auto next_slot = [&] {
    ++count;
    return count <= 2 ? std::string(kKeySlots[count - 1]) : fmt::format("key-{}", count);
  };
  for (NamedKey& key : keys) {
    if (!key.slot.empty()) continue;
    std::string slot = next_slot();
    while (is_taken(slot)) slot = next_slot();
    key.slot = std::move(slot);
  }
}

Result<> set_key(const std::string& path, std::string_view slot, const std::string& key) {
  ORRERY_TRY(auto texts, read_lines(path));
  ORRERY_TRY(const auto lines, parse_lines(path, texts));
  std::vector<NamedKey> keys;
  for (const Line& line : lines) keys.push_back(line.key);
  name_keys(keys);
  const std::string text = fmt::format("{}: {}", slot, key);
  const auto found = std::ranges::find(keys, slot, &NamedKey::slot);
  if (found != keys.end()) {
    texts[lines[static_cast<std::size_t>(found - keys.begin())].number - 1] = text;
  } else {
    texts.push_back(text);
  }
  std::string all;
  for (const std::string& line : texts) all.append(line).push_back('\n');
  return replace_file(path, all);
}

bool is_readable_by_others(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && (status.st_mode & S_IROTH) != 0;
}

}  // namespace orrery::server
