#include "server/kept_certificate.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "base/diagnostics.h"
#include "server/data_directory.h"
#include "storage/durable_file.h"

namespace orrery::server {
namespace {

using http::CertificateState;

/// A certificate is replaced so long before its end.
constexpr UnixSeconds kRenewBefore = 30 * 24 * 60 * 60;

/// Of localhost and `host` the worse.
CertificateState state_of(const http::Certificate& certificate, const std::string& host,
                          UnixSeconds now) {
  const auto local = http::certificate_state(certificate.certificate_pem, "localhost", now);
  if (local != CertificateState::Valid || host.empty()) return local;
  return http::certificate_state(certificate.certificate_pem, host, now);
}

/// Why it has to be made anew, in words; nullopt: it has not.
std::optional<std::string> reason_to_replace(const http::Certificate& certificate,
                                             const std::string& host, UnixSeconds now,
                                             const std::filesystem::path& path) {
  if (!http::belong_together(certificate)) return "cannot be read, or is not that of its key";
  switch (state_of(certificate, host, now)) {
    case CertificateState::NotYetValid:
      diagnostics::warning(
          "the certificate in {} is not valid yet: the clock of this machine is behind. It is "
          "kept. If the clock is right, remove the file, and a new one is made at the next start",
          path.string());
      return std::nullopt;
    case CertificateState::Expired:
      return "has expired";
    case CertificateState::OtherName:
      return fmt::format("is not for '{}'", host);
    case CertificateState::Unreadable:
      return "cannot be read";
    case CertificateState::Valid:
      break;
  }
  if (state_of(certificate, host, now + kRenewBefore) == CertificateState::Valid) {
    return std::nullopt;
  }
  return "ends within a month";
}

Result<std::filesystem::path> cache_directory() {
  std::filesystem::path home;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    home = cache;
  } else if (const char* user = std::getenv("HOME"); user != nullptr && *user == '/') {
    home = std::filesystem::path(user) / ".cache";
  } else {
    return Error(ErrorCode::Unavailable, "neither XDG_CACHE_HOME nor HOME is set");
  }
  std::error_code failure;
  std::filesystem::create_directories(home, failure);
  const auto directory = home / "orrery";
  ::mkdir(directory.c_str(), 0700);
  struct stat status{};
  if (::lstat(directory.c_str(), &status) != 0) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("cannot make {}: {}", directory.string(), std::strerror(errno)));
  }
  // A key in a directory that others can write to could be anybody's.
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 0077) != 0) {
    return Error(
        ErrorCode::Unavailable,
        fmt::format("{} is not a directory of this user alone (mode 0700)", directory.string()));
  }
  return directory;
}

}  // namespace

Result<http::Certificate> keep_certificate(const std::filesystem::path& directory,
                                           const std::string& host, UnixSeconds now) {
  const auto certificate_path = directory / kCertificateFile;
  const auto key_path = directory / kCertificateKeyFile;
  std::error_code ignored;
  if (std::filesystem::exists(certificate_path, ignored)) {
    http::Certificate kept;
    ORRERY_TRY(kept.certificate_pem, read_file(certificate_path));
    ORRERY_TRY(kept.key_pem, read_file(key_path));
    const auto reason = reason_to_replace(kept, host, now, certificate_path);
    if (!reason) return kept;
    diagnostics::info("making a new certificate: the one in {} {}", certificate_path.string(),
                      *reason);
  }
  std::vector<std::string> names;
  if (!host.empty()) names.push_back(host);
  ORRERY_TRY(auto made, http::make_self_signed_certificate(names, now));
  ORRERY_TRY(storage::write_durably(key_path, made.key_pem));
  ORRERY_TRY(storage::write_durably(certificate_path, made.certificate_pem));
  return made;
}

Result<http::Certificate> cached_certificate(UnixSeconds now) {
  ORRERY_TRY(const auto directory, cache_directory());
  const auto lock_path = directory / "lock";
  const int lock = ::open(lock_path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
  // The lock is held for as long as it takes to make a certificate, so waiting for it is short.
  if (lock < 0 || ::flock(lock, LOCK_EX) != 0) {
    const Error error(ErrorCode::Unavailable,
                      fmt::format("cannot lock {}: {}", lock_path.string(), std::strerror(errno)));
    if (lock >= 0) ::close(lock);
    return error;
  }
  auto certificate = keep_certificate(directory, "", now);
  ::close(lock);
  return certificate;
}

}  // namespace orrery::server
