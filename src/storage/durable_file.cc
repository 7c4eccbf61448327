#include "storage/durable_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include <fmt/format.h>

namespace orrery::storage {
namespace {

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(file, text.data(), text.size());
    if (size < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

}  // namespace

Result<> write_durably(const std::filesystem::path& path, std::string_view text) {
  return write_durably(path, [text](const std::filesystem::path&) { return std::string(text); });
}

Result<> write_durably(const std::filesystem::path& path,
                       const std::function<std::string(const std::filesystem::path&)>& make) {
  const std::string draft = path.string() + ".new";
  const auto failed = [&] {
    return Error(ErrorCode::Unavailable,
                 fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
  };
  const int file = ::open(draft.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return failed();
  const bool stored = write_all(file, make(draft)) && ::fsync(file) == 0;
  ::close(file);
  if (!stored || std::rename(draft.c_str(), path.c_str()) != 0) return failed();
  // The new name is in the directory, which has to reach the disk too.
  const int directory = ::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return failed();
  const bool named = ::fsync(directory) == 0;
  ::close(directory);
  if (!named) return failed();
  return {};
}

}  // namespace orrery::storage
