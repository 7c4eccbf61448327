// A request for a connection, and its outcome.
#pragma once

#include <string>
#include <string_view>

#include "client/exchange/endpoint.h"
#include "client/transport/transport.h"

namespace orrery::client {

/// One request as bytes.
struct Outgoing {
  EndpointPtr endpoint;
  std::string head;        ///< request line and headers, with the empty line that ends them
  std::string_view body;   ///< of somebody who outlives the attempt
  bool head_only = false;  ///< the answer has no body whatever it says: HEAD
  /// The server may take its time, as long polls do. Such requests do not count as busy ones.
  bool waits = false;
};

/// Why there is no answer.
enum class NoAnswer {
  None,         ///< there is one
  Unreachable,  ///< no connection: nothing can have arrived
  Distrusted,   ///< a connection, but not to somebody whom we may talk to; likewise
  Broken,       ///< the connection ended, or said what is not HTTP: it may have been carried out
  TimedOut,     ///< no answer in time; see `sent`
  Cancelled,
};

struct Outcome {
  NoAnswer no_answer = NoAnswer::None;
  Reply reply;        ///< names of headers in lower case
  std::string words;  ///< why there is no answer
  bool sent = true;   ///< whether some of the request may have arrived
  /// The connection had been used before, and broke before any of the answer came: as likely as not
  /// the server had closed it for being idle.
  bool broke_idle = false;

  static Outcome failed(NoAnswer why, std::string words, bool sent) {
    return {.no_answer = why, .reply = {}, .words = std::move(words), .sent = sent};
  }
  static Outcome cancelled(bool sent) {
    return failed(NoAnswer::Cancelled, "the call was cancelled", sent);
  }
};

}  // namespace orrery::client
