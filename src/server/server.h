// Server: everything wired together, in the order in which it starts and stops.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "server/config.h"

namespace orrery::server {

class Server {
 public:
  /// Opens the data and starts serving. Blocks for milliseconds. BadRequest for a configuration
  /// that makes no sense or is not safe; Unavailable when directory, disk or port cannot be had.
  /// The message says what to do.
  static Result<std::unique_ptr<Server>> open(const Config& config);
  virtual ~Server() = default;

  virtual std::uint16_t port() const = 0;
  /// A few lines for the operator: where the data is, where it listens, and what to paste.
  virtual std::string introduction() const = 0;
  /// Reads the key file and the certificate's files again. From when it returns the keys that are
  /// no longer there open nothing, streams of changes that they opened end with their next sign of
  /// life, and new connections have the new certificate. A fault of any of the files is an
  /// error as of open(), and everything stays as it was. Blocks. Thread-safe.
  virtual Result<> reload() = 0;
  /// Stops accepting, finishes what is running for at most `grace`, and closes everything.
  virtual void stop(std::chrono::milliseconds grace) = 0;
};

}  // namespace orrery::server
