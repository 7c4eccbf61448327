#include "query/syntax/text_error.h"

#include <string>

#include <fmt/format.h>

#include "json/document_text.h"
#include "protocol/utf8.h"

namespace orrery::query {
namespace {

constexpr std::size_t kShownBytesMax = 60;

/// How many UTF-16 units come before `text[end]`. Bytes that are not UTF-8 count as one each.
std::size_t utf16_units(std::string_view text, std::size_t end) {
  std::size_t units = 0;
  for (std::size_t at = 0; at < end && at < text.size();) {
    const auto [value, size] = decode_utf8(text, at);
    units += value > 0xFFFF ? 2 : 1;
    at += size == 0 ? 1 : size;
  }
  return units;
}

}  // namespace

Error text_error(std::string_view text, Span where, std::string_view code,
                 std::string_view message) {
  std::string out = "Message: {\"errors\":[{\"severity\":\"Error\",\"location\":";
  fmt::format_to(std::back_inserter(out), "{{\"start\":{},\"end\":{}}},",
                 utf16_units(text, where.begin), utf16_units(text, where.end));
  if (!code.empty()) out.append("\"code\":\"").append(code).append("\",");
  out += "\"message\":";
  json::append_quoted(out, message);
  out += "}]}";
  return Error(ErrorCode::BadRequest, std::move(out));
}

Error syntax_error_near(std::string_view text, Span where) {
  if (where.begin >= text.size()) {
    return text_error(text, where, "SC1002", "Syntax error, unexpected end-of-file.");
  }
  std::string_view token = text.substr(where.begin, where.end - where.begin);
  std::string_view dots;
  if (token.size() > kShownBytesMax) {
    std::size_t size = kShownBytesMax;
    while (size > 0 && (static_cast<unsigned char>(token[size]) & 0xC0) == 0x80) --size;
    token = token.substr(0, size);
    dots = "…";
  }
  return text_error(text, where, "SC1001",
                    fmt::format("Syntax error, incorrect syntax near '{}{}'.", token, dots));
}

}  // namespace orrery::query
