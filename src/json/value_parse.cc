// Checking a text before values are read from it.
#include <algorithm>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <simdjson.h>

#include "json/document_text.h"
#include "json/scan.h"
#include "json/value.h"

namespace orrery::json {
namespace {

namespace dom = simdjson::dom;

simdjson::error_code check_grammar(dom::parser& parser, std::string text) {
  text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  if (parser.capacity() < text.size() || parser.max_depth() != kParserDepth) {
    const auto error = parser.allocate(std::max(text.size(), kParserBytesMin), kParserDepth);
    if (error) return error;
  }
  return parser.parse(text.data(), text.size(), false).error();
}

/// The same text with 0 for every number that is well written: simdjson refuses those that neither
/// 64 bits nor a double hold, which JSON allows.
std::string without_numbers(std::string_view text) {
  std::string result;
  std::size_t copied = 0;
  for_each_number(text, [&](std::size_t begin, std::size_t end) {
    if (is_json_number(text.substr(begin, end - begin))) {
      result.append(text, copied, begin - copied).append("0");
      copied = end;
    }
    return true;
  });
  return result.append(text, copied);
}

/// The deepest place of a text that is valid.
std::size_t nesting(std::string_view text) {
  std::size_t level = 0;
  std::size_t deepest = 0;
  for (std::size_t at = 0; at < text.size();) {
    switch (text[at]) {
      case '"':
        at = after_string(text, at);
        continue;
      case '{':
      case '[':
        deepest = std::max(deepest, ++level);
        break;
      case '}':
      case ']':
        --level;
        break;
      default:
        break;
    }
    ++at;
  }
  return deepest;
}

}  // namespace

Result<Value> Value::parse(std::string_view text) {
  thread_local dom::parser kept_parser;
  std::optional<dom::parser> own_parser;
  if (text.size() > kKeptParserBytesMax) own_parser.emplace();
  dom::parser& parser = own_parser ? *own_parser : kept_parser;

  auto error = check_grammar(parser, std::string(text));
  if (error == simdjson::NUMBER_ERROR || error == simdjson::NUMBER_OUT_OF_RANGE) {
    error = check_grammar(parser, without_numbers(text));
  }
  if (error == simdjson::MEMALLOC) {
    return Error(ErrorCode::Unavailable, "There is no memory to parse the JSON text.");
  }
  if (error == simdjson::EMPTY) return bad_request("The JSON text is empty.");
  if (error == simdjson::DEPTH_ERROR || (!error && nesting(text) > kNestingMax)) {
    return bad_request(fmt::format("The JSON text is nested deeper than {} levels.", kNestingMax));
  }
  if (error) {
    return bad_request(
        fmt::format("The text is not valid JSON: {}", simdjson::error_message(error)));
  }
  return of_checked(text);
}

}  // namespace orrery::json
