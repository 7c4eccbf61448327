// The data directory: whose it is, and what lies in it besides the store.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "http/certificate.h"

namespace orrery::server {

/// Holds the directory for one server process; removes it at the end if it is ephemeral.
class DataDirectory {
 public:
  /// Makes the directory if need be, for its owner only, and locks it. Unavailable, naming the
  /// holder, when another server has it; when it holds files of somebody else and no data of a
  /// server; or when a back-up was not restored into it to the end.
  static Result<std::unique_ptr<DataDirectory>> open(const std::filesystem::path& path);
  /// The same for a restore, which may go on where one did not come to its end.
  static Result<std::unique_ptr<DataDirectory>> open_for_restore(const std::filesystem::path& path);
  /// A new directory for temporary files, removed by the destructor. Those of servers that were
  /// killed are removed first.
  static Result<std::unique_ptr<DataDirectory>> make_ephemeral();
  ~DataDirectory();

  const std::filesystem::path& path() const { return path_; }
  bool ephemeral() const { return ephemeral_; }
  /// Describes this server to a second one.
  void describe_holder(const std::string& endpoint) const;

  /// The self-signed certificate kept here, or for ephemeral ones in the user's cache. See
  /// keep_certificate().
  Result<http::Certificate> certificate(const std::string& host, UnixSeconds now) const;

  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;

 private:
  static Result<std::unique_ptr<DataDirectory>> lock(const std::filesystem::path& absolute);
  DataDirectory(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::filesystem::path path_;
  int lock_;
  bool ephemeral_ = false;
};

/// The whole file. Unavailable with its name when it cannot be read.
Result<std::string> read_file(const std::filesystem::path& path);

}  // namespace orrery::server
