#include "http/response_head.h"

#include <charconv>
#include <ctime>

#include <fmt/format.h>

namespace orrery::http {
namespace {

struct StatusLine {
  int status;
  std::string_view text;
};

constexpr StatusLine kStatusLines[] = {
    {200, "HTTP/1.1 200 OK\r\n"},
    {201, "HTTP/1.1 201 Created\r\n"},
    {204, "HTTP/1.1 204 No Content\r\n"},
    {304, "HTTP/1.1 304 Not Modified\r\n"},
    {404, "HTTP/1.1 404 Not Found\r\n"},
    {409, "HTTP/1.1 409 Conflict\r\n"},
    {412, "HTTP/1.1 412 Precondition Failed\r\n"},
    {202, "HTTP/1.1 202 Accepted\r\n"},
    {206, "HTTP/1.1 206 Partial Content\r\n"},
    {207, "HTTP/1.1 207 Multi-Status\r\n"},
    {301, "HTTP/1.1 301 Moved Permanently\r\n"},
    {302, "HTTP/1.1 302 Found\r\n"},
    {307, "HTTP/1.1 307 Temporary Redirect\r\n"},
    {400, "HTTP/1.1 400 Bad Request\r\n"},
    {401, "HTTP/1.1 401 Unauthorized\r\n"},
    {403, "HTTP/1.1 403 Forbidden\r\n"},
    {405, "HTTP/1.1 405 Method Not Allowed\r\n"},
    {408, "HTTP/1.1 408 Request Timeout\r\n"},
    {410, "HTTP/1.1 410 Gone\r\n"},
    {413, "HTTP/1.1 413 Content Too Large\r\n"},
    {415, "HTTP/1.1 415 Unsupported Media Type\r\n"},
    {424, "HTTP/1.1 424 Failed Dependency\r\n"},
    {429, "HTTP/1.1 429 Too Many Requests\r\n"},
    {431, "HTTP/1.1 431 Request Header Fields Too Large\r\n"},
    {449, "HTTP/1.1 449 Retry With\r\n"},
    {500, "HTTP/1.1 500 Internal Server Error\r\n"},
    {501, "HTTP/1.1 501 Not Implemented\r\n"},
    {503, "HTTP/1.1 503 Service Unavailable\r\n"},
};

void append_status_line(std::string& out, int status) {
  for (const auto& line : kStatusLines) {
    if (line.status == status) {
      out.append(line.text);
      return;
    }
  }
  fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} Status\r\n", status);
}

}  // namespace

std::string http_date(UnixSeconds time) {
  // Not strftime: its names follow the locale.
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t seconds = time;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[parts.tm_wday],
                     parts.tm_mday, kMonths[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour,
                     parts.tm_min, parts.tm_sec);
}

void append_head(std::string& out, const Response& response, const Framing& framing) {
  append_status_line(out, response.status);
  out.append("date: ").append(framing.date).append("\r\n");
  out.append(response.header_lines());
  if (framing.close) {
    out.append("connection: close\r\n");
  } else if (framing.keep_alive) {
    out.append("connection: keep-alive\r\n");
  }
  if (!status_has_body(response.status)) {
    // Nothing follows.
  } else if (response.stream) {
    if (framing.chunked) out.append("transfer-encoding: chunked\r\n");
  } else {
    char digits[20];
    const auto end = std::to_chars(digits, digits + sizeof digits, response.body_size()).ptr;
    out.append("content-length: ").append(digits, end).append("\r\n");
  }
  out.append("\r\n");
}

}  // namespace orrery::http
