// Transport: requests over libcurl, with connections that are used again.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/header_name.h"
#include "base/result.h"

namespace orrery::client {

using HeaderList = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method = "GET";
  std::string path;  ///< with its leading slash, percent-encoded
  HeaderList headers;
  std::string body;
};

struct Reply {
  int status = 0;
  HeaderList headers;
  std::string body;

  /// The first header of that name; empty when absent.
  std::string_view header(HeaderName name) const;
};

struct TransportOptions {
  std::string endpoint;  ///< "http://127.0.0.1:8081"
  std::string
      certificate_file{};  ///< PEM of the server's certificate authority; empty: the system's
  bool verify_certificate = true;  ///< false only for a server on one's own machine
  std::chrono::milliseconds connect_time_max{10'000};
  std::chrono::milliseconds request_time_max{90'000};
};

/// One connection at a time, kept open between requests. Blocks; for one thread.
class Transport {
 public:
  explicit Transport(TransportOptions options);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// Unavailable when there is no answer: the message says why, in words. Every status is an
  /// answer.
  Result<Reply> send(const Request& request);

  /// The same for an answer without end: hands the body of a 200 to `take` as it arrives, until the
  /// server ends it, `take` returns false, or nothing has come for `silence_max`. Any other answer
  /// comes back whole.
  using Take = std::function<bool(std::string_view piece)>;
  Result<Reply> stream(const Request& request, std::chrono::seconds silence_max, const Take& take);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace orrery::client
