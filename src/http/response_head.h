// The text in front of a response body.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "http/message.h"

namespace orrery::http {

/// How a response is framed, apart from what it says.
struct Framing {
  bool close = false;       ///< the connection ends with it
  bool keep_alive = false;  ///< say so, as HTTP/1.0 needs
  bool chunked = false;     ///< of a stream; without it the end of the connection is its end
  std::string_view date;    ///< RFC 1123
};

/// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string http_date(UnixSeconds time);

/// 204 and 304 end with their head, whatever the handler put into the body.
constexpr bool status_has_body(int status) {
  return status >= 200 && status != 204 && status != 304;
}

/// Appends status line and headers with the empty line to `out`.
void append_head(std::string& out, const Response& response, const Framing& framing);

}  // namespace orrery::http
