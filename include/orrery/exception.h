// CosmosException: what every call of the client throws when it did not do what it was asked for.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

namespace orrery::client {

/// Why there is no usable answer.
enum class Failure {
  Response,   ///< the server refused; status() says how
  Network,    ///< there was no answer: no connection, or it broke
  Timeout,    ///< there was no answer in time
  Cancelled,  ///< the caller's stop token asked for an end
  Argument,   ///< nothing was sent: the call itself can't be meant
};

/// A part of a text, in UTF-16 units from 0, as the service counts them.
struct TextLocation {
  std::size_t start = 0;
  std::size_t end = 0;  ///< exclusive
  bool operator==(const TextLocation&) const = default;
};

/// Thrown by every call of the client that fails, after the retries that are due. what() is a
/// sentence for a person: the server's message, or what went wrong on the way to it.
class CosmosException : public std::runtime_error {
 public:
  struct Details {
    Failure failure = Failure::Response;
    int status = 0;
    int sub_status = 0;
    std::string code;  ///< as in the answer's body: "NotFound", "Conflict"
    std::string activity_id;
    std::string etag;
    std::string session_token;
    double request_charge = 0;
    std::optional<std::chrono::milliseconds> retry_after;
    std::string diagnostics;
    std::optional<TextLocation> location;
  };

  CosmosException(const std::string& message, Details details)
      : std::runtime_error(message), details_(std::move(details)) {}

  Failure failure() const noexcept { return details_.failure; }
  /// The status of the answer; 0 when there was none.
  int status() const noexcept { return details_.status; }
  /// The finer reason, as in x-ms-substatus; 0 when the server gave none.
  int sub_status() const noexcept { return details_.sub_status; }
  const std::string& code() const noexcept { return details_.code; }
  const std::string& activity_id() const noexcept { return details_.activity_id; }
  const std::string& etag() const noexcept { return details_.etag; }
  const std::string& session_token() const noexcept { return details_.session_token; }
  double request_charge() const noexcept { return details_.request_charge; }
  /// How long the server asked to wait before another attempt.
  std::optional<std::chrono::milliseconds> retry_after() const noexcept {
    return details_.retry_after;
  }
  /// Where the request was sent, how often, and what came of each attempt.
  const std::string& diagnostics() const noexcept { return details_.diagnostics; }

  /// Where the mistake is in the text of a query or filter, if that is what was refused.
  const std::optional<TextLocation>& location() const noexcept { return details_.location; }

  bool is_not_found() const noexcept { return status() == 404 && sub_status() != 1002; }
  bool is_conflict() const noexcept { return status() == 409; }
  bool is_precondition_failed() const noexcept { return status() == 412; }
  bool is_too_many_requests() const noexcept { return status() == 429; }
  /// The range was split or merged, or is served elsewhere now.
  bool is_gone() const noexcept { return status() == 410; }

 private:
  Details details_;
};

}  // namespace orrery::client
