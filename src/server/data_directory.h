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
  /// Makes the directory if need be and locks it. Unavailable, naming the holder, when another
  /// server has it.
  static Result<std::unique_ptr<DataDirectory>> open(const std::filesystem::path& path);
  /// A new directory for temporary files, removed by the destructor.
  static Result<std::unique_ptr<DataDirectory>> make_ephemeral();
  ~DataDirectory();

  const std::filesystem::path& path() const { return path_; }
  bool ephemeral() const { return ephemeral_; }
  /// What a second server is told about this one.
  void describe_holder(const std::string& endpoint) const;

  /// The self-signed certificate kept here; made anew when it does not serve `host` or has expired.
  Result<http::Certificate> certificate(const std::string& host, UnixSeconds now) const;

  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;

 private:
  DataDirectory(std::filesystem::path path, int lock, bool ephemeral)
      : path_(std::move(path)), lock_(lock), ephemeral_(ephemeral) {}

  std::filesystem::path path_;
  int lock_;
  bool ephemeral_;
};

/// The whole file. Unavailable with its name when it cannot be read.
Result<std::string> read_file(const std::filesystem::path& path);

}  // namespace orrery::server
