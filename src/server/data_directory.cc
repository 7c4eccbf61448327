#include "server/data_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/diagnostics.h"
#include "server/kept_certificate.h"
#include "storage/backup.h"
#include "storage/format_file.h"
#include "storage/life_mark.h"
#include "storage/recovery/watermark.h"

namespace orrery::server {
namespace {

constexpr std::string_view kLockFile = "lock";
/// In directories that may be removed once nobody holds their lock.
constexpr std::string_view kEphemeralFile = "ephemeral";
/// Of a name such as orrery-UeKmIM.
constexpr std::string_view kEphemeralPrefix = "orrery-";
constexpr std::size_t kEphemeralSuffixSize = 6;
/// A lock that is younger may be held in a moment.
constexpr time_t kSweepAgeSeconds = 60;
/// How many files that are not ours a refusal names.
constexpr std::size_t kNamedMax = 3;

/// Names of files that an unfinished first start may have left, or that file systems make; and of
/// ours, since the store has better words for a directory that only `format` is missing from.
bool is_harmless(std::string_view name) {
  if (name.ends_with(".new")) name.remove_suffix(4);
  return name.starts_with('.') || name == "lost+found" || name == "store" || name == kLockFile ||
         name == storage::kFormatFile || name == kEphemeralFile || name == kCertificateFile ||
         name == kCertificateKeyFile || name == storage::kUnfinishedRestoreFile ||
         name == storage::kLifeMarkFile || name == storage::kWatermarkFile;
}

/// A server's files among those of others would be mixed with them for good, and a mistyped
/// --data-dir would not be noticed.
Result<> refuse_files_of_others(const std::filesystem::path& path) {
  std::error_code failure;
  if (std::filesystem::exists(path / storage::kFormatFile, failure)) return {};
  std::string names;
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path, failure)) {
    const std::string name = entry.path().filename().string();
    if (is_harmless(name)) continue;
    if (++count <= kNamedMax) names += (names.empty() ? "" : ", ") + name;
  }
  if (failure) {
    return Error(ErrorCode::Unavailable, fmt::format("cannot read the data directory {}: {}",
                                                     path.string(), failure.message()));
  }
  if (count == 0) return {};
  if (count > kNamedMax) names += fmt::format(" and {} more", count - kNamedMax);
  return Error(ErrorCode::Unavailable,
               fmt::format("the directory {} holds other files ({}) and no data of Orrery: choose "
                           "an empty or a new one with --data-dir",
                           path.string(), names));
}

/// The directory, for its owner only if it has to be made; those above it as usual.
Result<std::filesystem::path> make_directory(const std::filesystem::path& path) {
  std::error_code failure;
  auto absolute = std::filesystem::absolute(path, failure).lexically_normal();
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  if (!failure) std::filesystem::create_directories(absolute.parent_path(), failure);
  if (!failure && ::mkdir(absolute.c_str(), 0700) == 0) return absolute;
  if (!failure && (errno != EEXIST || !std::filesystem::is_directory(absolute, failure))) {
    failure = std::error_code(errno, std::generic_category());
  }
  if (failure) {
    return Error(ErrorCode::Unavailable, fmt::format("cannot make the data directory {}: {}",
                                                     path.string(), failure.message()));
  }
  struct stat status{};
  if (::stat(absolute.c_str(), &status) == 0 && (status.st_mode & S_IRWXO) != 0) {
    diagnostics::warning(
        "the data directory {} can be read by everybody on this machine: chmod o= {}",
        absolute.string(), absolute.string());
  }
  return absolute;
}

/// A descriptor that holds the lock; nullopt when another process does.
Result<std::optional<int>> take_lock(const std::filesystem::path& path) {
  const int lock = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("cannot open {}: {}", path.string(), std::strerror(errno)));
  }
  if (::flock(lock, LOCK_EX | LOCK_NB) == 0) return lock;
  ::close(lock);
  return std::nullopt;
}

bool is_name_of_ephemeral(std::string_view name) {
  if (!name.starts_with(kEphemeralPrefix)) return false;
  name.remove_prefix(kEphemeralPrefix.size());
  return name.size() == kEphemeralSuffixSize &&
         std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0; });
}

/// Removes a directory if it is ours, of a server that is gone. Everything about it is checked:
/// anybody may put anything into a place for temporary files.
void sweep(const std::filesystem::path& path, time_t now) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != ::geteuid()) {
    return;
  }
  struct stat marker{};
  if (::lstat((path / kEphemeralFile).c_str(), &marker) != 0) return;
  struct stat lock_status{};
  if (::lstat((path / kLockFile).c_str(), &lock_status) != 0 ||
      now - lock_status.st_mtime < kSweepAgeSeconds) {
    return;
  }
  const auto lock = take_lock(path / kLockFile);
  if (!lock || !*lock) return;
  std::error_code failure;
  std::filesystem::remove_all(path, failure);
  ::close(**lock);
  if (failure) {
    diagnostics::warning("cannot remove {}: {}", path.string(), failure.message());
  } else {
    diagnostics::info("removed {}: the server that used it was killed", path.string());
  }
}

/// `now` by the clock of the file system.
void sweep_all(const std::filesystem::path& base, time_t now) {
  std::error_code failure;
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(base, failure)) {
    if (is_name_of_ephemeral(entry.path().filename().string())) found.push_back(entry.path());
  }
  for (const auto& path : found) sweep(path, now);
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in.is_open() || in.bad()) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
  }
  return text;
}

Result<std::unique_ptr<DataDirectory>> DataDirectory::open(const std::filesystem::path& path) {
  ORRERY_TRY(const auto absolute, make_directory(path));
  if (storage::is_restore_unfinished(absolute)) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("a restore into {} is going on, or did not come to its end. Run "
                             "'orrery backup restore' again",
                             absolute.string()));
  }
  ORRERY_TRY(refuse_files_of_others(absolute));
  return lock(absolute);
}

Result<std::unique_ptr<DataDirectory>> DataDirectory::open_for_restore(
    const std::filesystem::path& path) {
  ORRERY_TRY(const auto absolute, make_directory(path));
  ORRERY_TRY(refuse_files_of_others(absolute));
  return lock(absolute);
}

Result<std::unique_ptr<DataDirectory>> DataDirectory::lock(const std::filesystem::path& absolute) {
  const auto lock_path = absolute / kLockFile;
  ORRERY_TRY(const auto taken, take_lock(lock_path));
  if (!taken) {
    const auto holder = read_file(lock_path);
    return Error(
        ErrorCode::Unavailable,
        fmt::format("the data directory {} is in use by {}. Stop that server, or choose "
                    "another directory with --data-dir",
                    absolute.string(), holder && !holder->empty() ? *holder : "another process"));
  }
  // It is somebody's from now on, although it was left behind by a server that would have removed
  // it.
  ::unlink((absolute / kEphemeralFile).c_str());
  return std::unique_ptr<DataDirectory>(new DataDirectory(absolute, *taken));
}

Result<std::unique_ptr<DataDirectory>> DataDirectory::make_ephemeral() {
  const char* variable = std::getenv("TMPDIR");
  const std::string base = variable != nullptr && *variable != '\0' ? variable : "/tmp";
  std::string name = fmt::format("{}/{}XXXXXX", base, kEphemeralPrefix);
  if (::mkdtemp(name.data()) == nullptr) {
    return Error(ErrorCode::Unavailable, fmt::format("cannot make a temporary directory {}: {}",
                                                     name, std::strerror(errno)));
  }
  ORRERY_TRY(auto directory, open(name));
  directory->ephemeral_ = true;
  std::ofstream(directory->path() / kEphemeralFile)
      << "removed when the server that made it ends\n";
  struct stat status{};
  if (::stat(name.c_str(), &status) == 0) sweep_all(base, status.st_mtime);
  return directory;
}

DataDirectory::~DataDirectory() {
  if (ephemeral_) {
    std::error_code failure;
    std::filesystem::remove_all(path_, failure);
    if (failure) {
      diagnostics::warning("cannot remove {}: {}", path_.string(), failure.message());
    }
  }
  ::close(lock_);
}

void DataDirectory::describe_holder(const std::string& endpoint) const {
  const std::string text = fmt::format("orrery, process {}, at {}", ::getpid(), endpoint);
  // Only a hint for a second server; the lock itself is what counts.
  if (::ftruncate(lock_, 0) == 0) {
    [[maybe_unused]] const auto written = ::pwrite(lock_, text.data(), text.size(), 0);
  }
}

Result<http::Certificate> DataDirectory::certificate(const std::string& host,
                                                     UnixSeconds now) const {
  if (ephemeral_) {
    // Clients that were told to trust it need not be told again at every start.
    auto cached = cached_certificate(now);
    if (!cached) {
      diagnostics::info("there is no place for a certificate that lasts: {}",
                        cached.error().message());
    } else if (host.empty() || http::certificate_serves(cached->certificate_pem, host, now)) {
      return cached;
    }
  }
  return keep_certificate(path_, host, now);
}

}  // namespace orrery::server
