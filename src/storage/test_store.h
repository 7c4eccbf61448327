// For tests: a directory that goes away, a store in it, and a disk that can be made to refuse
// writes.
#pragma once

#include <stdlib.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/result.h"
#include "storage/batch.h"
#include "storage/store.h"

namespace orrery::storage {

/// Made empty, and removed with all that is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "orrery-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      std::perror("mkdtemp");
      std::abort();
    }
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// As `cp -a` does it, beside a store that may be running: a file that goes meanwhile is left out.
inline void copy_directory(const std::filesystem::path& from, const std::filesystem::path& to) {
  namespace fs = std::filesystem;
  fs::create_directories(to);
  for (const auto& each : fs::recursive_directory_iterator(from)) {
    const auto twin = to / fs::relative(each.path(), from);
    if (std::error_code ignored; each.is_directory(ignored)) {
      fs::create_directories(twin);
      continue;
    }
    std::error_code gone;
    const auto time = fs::last_write_time(each.path(), gone);
    if (gone || !fs::copy_file(each.path(), twin, gone)) continue;
    fs::last_write_time(twin, time);
  }
}

/// Relaxed, since an fsync per commit would only slow the tests down.
inline Result<std::unique_ptr<Store>> try_open_store(const std::filesystem::path& directory) {
  return Store::open(
      {.directory = directory, .durability = Durability::Relaxed, .cache_bytes = 4 << 20});
}

/// Stops the test program when the store cannot be opened.
inline std::unique_ptr<Store> open_store(const std::filesystem::path& directory) {
  auto store = try_open_store(directory);
  if (!store) {
    std::fprintf(stderr, "cannot open the store: %s\n", store.error().message().c_str());
    std::abort();
  }
  return std::move(*store);
}

inline Result<> commit(Store& store, const Batch& batch) {
  const Batch* const batches[] = {&batch};
  return store.commit(batches);
}

/// While one lives, no file of this process can grow beyond `file_bytes_max`: what would is refused
/// with EFBIG, as a full disk refuses it with ENOSPC. By default nothing at all can be written.
class FullDisk {
 public:
  explicit FullDisk(std::size_t file_bytes_max = 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = file_bytes_max;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
};

/// Bytes that do not compress, others with every call.
inline std::string noise(std::size_t size) {
  static std::mt19937_64 generator;
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(generator());
  return bytes;
}

using KeysAndValues = std::vector<std::pair<std::string, std::string>>;

/// Everything in [lower, upper) of a family, as a snapshot of now shows it.
inline KeysAndValues contents(const Snapshot& snapshot, Family family, std::string_view lower = "",
                              std::string_view upper = std::string_view("\xFF\xFF\xFF\xFF\xFF",
                                                                        5)) {
  KeysAndValues found;
  auto cursor = snapshot.cursor(family, lower, upper);
  for (; cursor.valid(); cursor.next()) found.emplace_back(cursor.key(), cursor.value());
  return found;
}

}  // namespace orrery::storage
