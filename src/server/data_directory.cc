#include "server/data_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/diagnostics.h"
#include "storage/durable_file.h"

namespace orrery::server {
namespace {

constexpr const char* kLockFile = "lock";
constexpr const char* kCertificateFile = "tls-certificate.pem";
constexpr const char* kKeyFile = "tls-key.pem";

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
  std::error_code failure;
  std::filesystem::create_directories(path, failure);
  if (failure) {
    return Error(ErrorCode::Unavailable, fmt::format("cannot make the data directory {}: {}",
                                                     path.string(), failure.message()));
  }
  const auto absolute = std::filesystem::absolute(path, failure);
  const auto lock_path = absolute / kLockFile;
  const int lock = ::open(lock_path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (lock < 0) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("cannot open {}: {}", lock_path.string(), std::strerror(errno)));
  }
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock);
    const auto holder = read_file(lock_path);
    return Error(
        ErrorCode::Unavailable,
        fmt::format("the data directory {} is in use by {}. Stop that server, or choose "
                    "another directory with --data-dir",
                    absolute.string(), holder && !holder->empty() ? *holder : "another process"));
  }
  return std::unique_ptr<DataDirectory>(new DataDirectory(absolute, lock, false));
}

Result<std::unique_ptr<DataDirectory>> DataDirectory::make_ephemeral() {
  const char* base = std::getenv("TMPDIR");
  std::string name =
      std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/orrery-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    return Error(ErrorCode::Unavailable, fmt::format("cannot make a temporary directory {}: {}",
                                                     name, std::strerror(errno)));
  }
  ORRERY_TRY(auto directory, open(name));
  directory->ephemeral_ = true;
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
  // Only a convenience for whoever comes second; the lock itself is what counts.
  if (::ftruncate(lock_, 0) == 0) {
    [[maybe_unused]] const auto written = ::pwrite(lock_, text.data(), text.size(), 0);
  }
}

Result<http::Certificate> DataDirectory::certificate(const std::string& host,
                                                     UnixSeconds now) const {
  const auto certificate_path = path_ / kCertificateFile;
  const auto key_path = path_ / kKeyFile;
  std::error_code ignored;
  if (std::filesystem::exists(certificate_path, ignored)) {
    ORRERY_TRY(auto certificate, read_file(certificate_path));
    ORRERY_TRY(auto key, read_file(key_path));
    const bool serves = http::certificate_serves(certificate, "localhost", now) &&
                        (host.empty() || http::certificate_serves(certificate, host, now));
    if (serves) return http::Certificate{std::move(certificate), std::move(key)};
    diagnostics::info("making a new certificate: the one in {} has expired or is not for '{}'",
                      certificate_path.string(), host);
  }
  std::vector<std::string> names;
  if (!host.empty()) names.push_back(host);
  ORRERY_TRY(auto made, http::make_self_signed_certificate(names, now));
  ORRERY_TRY(storage::write_durably(key_path, made.key_pem));
  ORRERY_TRY(storage::write_durably(certificate_path, made.certificate_pem));
  return made;
}

}  // namespace orrery::server
