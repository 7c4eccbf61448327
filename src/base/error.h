// Error: what went wrong, as a condition. Which status and sub-status a condition has on the wire
// is one table in protocol/wire/wire_error.cc.
#pragma once

#include <chrono>
#include <string>
#include <utility>

namespace orrery {

/// A condition that some caller can react to differently. Named after what happened, never after
/// a status code.
enum class ErrorCode {
  BadRequest,            ///< the request is malformed; the message says what to mend
  NumberNotInJson,       ///< the result of a query has an infinite number, or one that is none
  PartitionKeyMismatch,  ///< key header and container, or key header and body, do not agree
  ContainerRidMismatch,  ///< the client's cached container was deleted and created anew
  Unauthorized,          ///< no valid key or token
  Forbidden,             ///< a valid key, but not for this
  SharedThroughputFull,  ///< as many containers as may share a database's throughput
  NotFound,              ///< the addressed resource does not exist
  OwnerNotFound,         ///< something above the addressed resource does not exist
  SessionNotAvailable,   ///< the session token names a position this range has not reached
  MethodNotAllowed,      ///< the route exists, the verb does not
  RequestTimeout,        ///< the request did not arrive in time
  Conflict,              ///< the id, or a unique key, is taken
  RangeGone,             ///< the named partition key range is not, or no longer, there
  NameCacheStale,        ///< the range belongs to another container
  PreconditionFailed,    ///< If-Match does not hold
  RequestTooLarge,       ///< the body is above the limit
  ResponseTooLarge,      ///< the answer to a batch has no room for this operation's
  HeadTooLarge,          ///< request line and headers are above the limit
  TooManyRequests,       ///< one of our bounded queues is full; try again
  Internal,              ///< a fault of ours
  NotImplemented,        ///< a part of the service that this server does not have
  Unavailable,           ///< disk full, I/O error, starting or stopping; try again
  OutcomeUnknown,        ///< the disk failed during a write, which may prove to be committed
  ClientGone,            ///< nobody waits for the answer any more
  // These two never leave the server: the caller does the work again where it may take longer.
  NotInMemory,       ///< the value would have to be read from the disk
  ReadLimitReached,  ///< more documents or index entries than the caller may look at
};

class Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

  bool operator==(const Error&) const = default;

 private:
  ErrorCode code_;
  std::string message_;
};

/// A BadRequest. The message says what to mend.
inline Error bad_request(std::string message) {
  return Error(ErrorCode::BadRequest, std::move(message));
}

}  // namespace orrery
