#include "processor/leases/file_lease_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "processor/errors.h"
#include "processor/leases/blocking_lease_store.h"

namespace orrery::processor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFileThreads = 2;
constexpr std::size_t kVersionDigits = 20;
constexpr std::string_view kSuffix = ".json";
/// Of most file systems; what is written beside has a longer name.
constexpr std::size_t kNameMax = 255 - 4;

Error failed(const fs::path& path) {
  return Error(ErrorCode::Unavailable,
               fmt::format("cannot use {}: {}", path.string(), std::strerror(errno)));
}

bool is_plain(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '-' || letter == '=' || letter == '_';
}

std::string file_name(std::string_view id) {
  std::string name;
  for (const char letter : id) {
    if (is_plain(letter)) {
      name += letter;
    } else {
      name += fmt::format("%{:02X}", static_cast<unsigned char>(letter));
    }
  }
  return name.append(kSuffix);
}

/// nullopt: not a file of ours.
std::optional<std::string> id_of(std::string_view name) {
  if (!name.ends_with(kSuffix)) return std::nullopt;
  name.remove_suffix(kSuffix.size());
  std::string id;
  while (!name.empty()) {
    if (name[0] != '%') {
      id += name[0];
      name.remove_prefix(1);
      continue;
    }
    unsigned value = 0;
    if (name.size() < 3) return std::nullopt;
    const auto [stop, failure] = std::from_chars(name.data() + 1, name.data() + 3, value, 16);
    if (failure != std::errc() || stop != name.data() + 3) return std::nullopt;
    id += static_cast<char>(value);
    name.remove_prefix(3);
  }
  return id;
}

/// Holds the directory's lock while it lives.
class DirectoryLock {
 public:
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock(DirectoryLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  ~DirectoryLock() {
    if (file_ >= 0) ::close(file_);
  }

  static Result<DirectoryLock> take(const fs::path& directory) {
    std::error_code ignored;
    fs::create_directories(directory, ignored);
    const fs::path path = directory / "lock";
    const int file = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0) return failed(path);
    DirectoryLock lock(file);
    int outcome = 0;
    do {
      outcome = ::flock(file, LOCK_EX);
    } while (outcome != 0 && errno == EINTR);
    if (outcome != 0) return failed(path);
    return lock;
  }

  /// A version that was never given before.
  Result<std::uint64_t> next_version() {
    char digits[kVersionDigits] = {};
    const ssize_t size = ::pread(file_, digits, sizeof digits, 0);
    std::uint64_t version = 0;
    if (size > 0) std::from_chars(digits, digits + size, version);
    ++version;
    const std::string text = fmt::format("{:020}", version);
    if (::pwrite(file_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
      return failed("lock");
    }
    return version;
  }

 private:
  explicit DirectoryLock(int file) : file_(file) {}
  int file_;
};

/// The old file or the new one, whatever happens.
Result<> write_file(const fs::path& path, std::string_view text) {
  const fs::path draft = path.string() + ".new";
  const int file = ::open(draft.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return failed(draft);
  bool stored = true;
  while (stored && !text.empty()) {
    const ssize_t size = ::write(file, text.data(), text.size());
    stored = size >= 0;
    if (stored) text.remove_prefix(static_cast<std::size_t>(size));
  }
  stored = stored && ::fsync(file) == 0;
  ::close(file);
  if (!stored || std::rename(draft.c_str(), path.c_str()) != 0) return failed(path);
  return {};
}

std::string etag_of(std::uint64_t version) { return fmt::format("\"{}\"", version); }

}  // namespace

FileLeaseStore::FileLeaseStore(fs::path directory)
    : clock_(machine_clock_), directory_(std::move(directory)), pool_(kFileThreads) {}

FileLeaseStore::FileLeaseStore(fs::path directory, const Clock& clock)
    : clock_(clock), directory_(std::move(directory)), pool_(kFileThreads) {}

Result<fs::path> FileLeaseStore::path_of(const std::string& id) const {
  std::string name = file_name(id);
  if (name.size() > kNameMax) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("the id '{}' is too long for the name of a file", id));
  }
  return directory_ / name;
}

Result<StoredDocument> FileLeaseStore::read_now(const std::string& id) const {
  ORRERY_TRY(const auto path, path_of(id));
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    if (errno == ENOENT) return no_such_lease_document(id);
    return failed(path);
  }
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  StoredDocument document;
  std::uint64_t version = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, version);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ' ') {
    return Error(ErrorCode::BadRequest, fmt::format("{} is no document of ours", path.string()));
  }
  const auto second = std::from_chars(first.ptr + 1, end, document.ts);
  if (second.ec != std::errc() || second.ptr == end || *second.ptr != '\n') {
    return Error(ErrorCode::BadRequest, fmt::format("{} is no document of ours", path.string()));
  }
  document.id = id;
  document.etag = etag_of(version);
  document.text.assign(second.ptr + 1, end);
  document.store_now = clock_.unix_seconds();
  return document;
}

Result<std::vector<StoredDocument>> FileLeaseStore::list_now(const std::string& prefix) const {
  std::vector<StoredDocument> documents;
  std::error_code failure;
  if (!fs::exists(directory_, failure)) return documents;
  for (fs::directory_iterator entry(directory_, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const auto id = id_of(entry->path().filename().string());
    if (!id || !id->starts_with(prefix)) continue;
    auto document = read_now(*id);
    if (document) {
      documents.push_back(std::move(*document));
    } else if (document.error().code() != ErrorCode::NotFound) {  // It may just have been removed.
      return document.error();
    }
  }
  if (failure) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("cannot list {}: {}", directory_.string(), failure.message()));
  }
  std::ranges::sort(documents, {}, &StoredDocument::id);
  return documents;
}

/// With an etag, in the place of that version; without, as a new document.
Result<StoredDocument> FileLeaseStore::write_now(const std::string& id, const std::string& text,
                                                 const std::optional<std::string>& etag) {
  ORRERY_TRY(const auto path, path_of(id));
  ORRERY_TRY(auto lock, DirectoryLock::take(directory_));
  const auto before = read_now(id);
  if (!before && before.error().code() != ErrorCode::NotFound) return before.error();
  if (!etag && before) return Error(ErrorCode::Conflict, fmt::format("the id '{}' is taken", id));
  if (etag && !before) return no_such_lease_document(id);
  if (etag && before->etag != *etag) {
    return Error(ErrorCode::PreconditionFailed,
                 fmt::format("the document '{}' has another etag", id));
  }
  ORRERY_TRY(const auto version, lock.next_version());
  StoredDocument document;
  document.id = id;
  document.text = text;
  document.etag = etag_of(version);
  document.ts = clock_.unix_seconds();
  document.store_now = document.ts;
  ORRERY_TRY(write_file(path, fmt::format("{} {}\n{}", version, document.ts, text)));
  return document;
}

Result<> FileLeaseStore::remove_now(const std::string& id, const std::string& etag) {
  ORRERY_TRY(const auto path, path_of(id));
  ORRERY_TRY(auto lock, DirectoryLock::take(directory_));
  const auto before = read_now(id);
  if (!before) return before.error();
  if (!etag.empty() && before->etag != etag) {
    return Error(ErrorCode::PreconditionFailed,
                 fmt::format("the document '{}' has another etag", id));
  }
  if (::unlink(path.c_str()) != 0) return failed(path);
  return {};
}

Async<std::vector<StoredDocument>> FileLeaseStore::list(std::string prefix) {
  co_return co_await run_blocking(pool_, [this, prefix] { return list_now(prefix); });
}

Async<StoredDocument> FileLeaseStore::read(std::string id) {
  co_return co_await run_blocking(pool_, [this, id] { return read_now(id); });
}

Async<StoredDocument> FileLeaseStore::create(std::string id, std::string text) {
  co_return co_await run_blocking(pool_,
                                  [this, id, text] { return write_now(id, text, std::nullopt); });
}

Async<StoredDocument> FileLeaseStore::replace(std::string id, std::string text, std::string etag) {
  co_return co_await run_blocking(pool_,
                                  [this, id, text, etag] { return write_now(id, text, etag); });
}

Async<> FileLeaseStore::remove(std::string id, std::string etag) {
  co_return co_await run_blocking(pool_, [this, id, etag] { return remove_now(id, etag); });
}

std::shared_ptr<LeaseStore> file_lease_store(std::string directory) {
  return std::make_shared<BlockingLeaseStore>(
      std::make_unique<FileLeaseStore>(std::move(directory)));
}

}  // namespace orrery::processor
