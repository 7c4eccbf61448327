#include "protocol/wire/batch.h"

#include <iterator>

#include <fmt/format.h>

#include "base/header_name.h"
#include "json/document_text.h"
#include "protocol/utf8.h"
#include "protocol/wire/resource_body.h"

namespace orrery {
namespace {

/// Splits arrays and objects into the texts of their elements and members, and only looks for the
/// ends of those: each is parsed where it is used, and documents once.
class Splitter {
 public:
  explicit Splitter(std::string_view text, std::size_t at = 0) : text_(text), at_(at) {}

  /// Calls `take(text of the element, its place)` for each element of an array.
  template <typename Take>
  Result<> array(Take&& take) {
    ORRERY_TRY(expect('['));
    if (next_is(']')) return {};
    while (true) {
      const std::size_t begin = skip_space();
      ORRERY_TRY(const auto element, value());
      ORRERY_TRY(take(element, begin));
      if (next_is(']')) return {};
      ORRERY_TRY(expect(','));
    }
  }

  /// Calls `take(name, text of the value)` for each member of an object.
  template <typename Take>
  Result<> object(Take&& take) {
    ORRERY_TRY(expect('{'));
    if (next_is('}')) return {};
    while (true) {
      const std::size_t begin = skip_space();
      ORRERY_TRY(const auto quoted, value());
      const auto name = Json::parse(quoted, nullptr, false);
      if (!name.is_string()) return bad_at(begin, "a member's name is expected");
      ORRERY_TRY(expect(':'));
      ORRERY_TRY(const auto member, value());
      ORRERY_TRY(take(name.get_ref<const std::string&>(), member));
      if (next_is('}')) return {};
      ORRERY_TRY(expect(','));
    }
  }

  Result<> end() {
    if (skip_space() == text_.size()) return {};
    return bad_at(at_, "there is more after the end of the array");
  }

 private:
  static Error bad_at(std::size_t at, std::string_view what) {
    return bad_request(
        fmt::format("The batch request is not valid JSON at byte {}: {}.", at, what));
  }

  std::size_t skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
      ++at_;
    }
    return at_;
  }

  bool next_is(char c) {
    if (skip_space() == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Result<> expect(char c) {
    if (next_is(c)) return {};
    return bad_at(at_, fmt::format("'{}' is expected", c));
  }

  /// From the opening quote to behind the closing one.
  bool skip_string() {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == '"') {
        ++at_;
        return true;
      }
    }
    at_ = text_.size();
    return false;
  }

  Result<std::string_view> value() {
    const std::size_t begin = skip_space();
    std::size_t level = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        if (!skip_string()) return bad_at(begin, "a string has no end");
        if (level == 0) return text_.substr(begin, at_ - begin);
        continue;
      }
      const bool opens = c == '{' || c == '[';
      const bool closes = c == '}' || c == ']';
      const bool separates =
          c == ',' || c == ':' || c == ' ' || c == '\n' || c == '\r' || c == '\t';
      if (level == 0 && (closes || separates || (opens && at_ > begin))) break;
      ++at_;
      if (opens) ++level;
      if (closes && --level == 0) return text_.substr(begin, at_ - begin);
    }
    if (level != 0) return bad_at(begin, "an object or array has no end");
    if (at_ == begin) return bad_at(begin, "a value is expected");
    return text_.substr(begin, at_ - begin);
  }

  std::string_view text_;
  std::size_t at_;
};

struct TypeName {
  std::string_view name;
  BatchOperationType type;
};
constexpr TypeName kTypeNames[] = {
    {"Create", BatchOperationType::Create}, {"Upsert", BatchOperationType::Upsert},
    {"Read", BatchOperationType::Read},     {"Replace", BatchOperationType::Replace},
    {"Patch", BatchOperationType::Patch},   {"Delete", BatchOperationType::Delete},
};

/// Puts one member of an operation object where it belongs.
class OperationReader {
 public:
  /// `number` counts from 1, for messages.
  explicit OperationReader(std::size_t number) : number_(number) {}

  Result<> take(const std::string& name, std::string_view text) {
    if (name == "resourceBody") {
      operation_.resource_body = text;
      return {};
    }
    const auto value = Json::parse(text, nullptr, false);
    if (value.is_discarded()) return bad(fmt::format("'{}' is not valid JSON", name));
    if (value.is_null()) return {};
    if (name == "operationType") return take_type(value);
    if (name == "partitionKey") {
      // A string that holds an array; the array itself is as plain.
      if (!value.is_string() && !value.is_array()) {
        return bad(
            "'partitionKey' must be a string that holds a JSON array, as in \"[\\\"a\\\"]\"");
      }
      operation_.partition_key =
          value.is_string() ? value.get_ref<const std::string&>() : std::string(text);
      return {};
    }
    if (name == "minimalReturnPreference") {
      if (!value.is_boolean()) return bad("'minimalReturnPreference' must be true or false");
      operation_.minimal_return = value.get<bool>();
      return {};
    }
    if (name == "id") {
      if (!value.is_string()) return bad("'id' must be a string");
      operation_.id = value.get_ref<const std::string&>();
      return {};
    }
    for (const auto& [known, into] : {std::pair{"ifMatch", &operation_.if_match},
                                      {"ifNoneMatch", &operation_.if_none_match},
                                      {"indexingDirective", &operation_.indexing_directive}}) {
      if (name != known) continue;
      if (!value.is_string()) return bad(fmt::format("'{}' must be a string", name));
      *into = value.get_ref<const std::string&>();
      return {};
    }
    return {};  // timeToLiveInSeconds, binaryId, effectivePartitionKey and what may come.
  }

  Result<BatchOperation> done() && {
    if (!has_type_) return bad("it lacks its 'operationType'");
    return std::move(operation_);
  }

 private:
  Result<> take_type(const Json& value) {
    if (value.is_string()) {
      for (const TypeName& known : kTypeNames) {
        if (!equal_ignoring_case(value.get_ref<const std::string&>(), known.name)) continue;
        operation_.type = known.type;
        has_type_ = true;
        return {};
      }
    }
    constexpr std::size_t kShownMax = 40;
    return bad(fmt::format(
        "'operationType' must be Create, Upsert, Read, Replace, Patch or Delete, not {}",
        value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, kShownMax)));
  }

  Error bad(std::string_view what) const {
    return bad_request(
        fmt::format("Operation {} of the batch request is malformed: {}.", number_, what));
  }

  const std::size_t number_;
  bool has_type_ = false;
  BatchOperation operation_;
};

}  // namespace

Result<> check_batch_size(std::size_t count) {
  if (count == 0) return bad_request("Batch request has no operations.");
  if (count > kBatchOperationsMax) {
    return bad_request("Batch request has more operations than what is supported.");
  }
  return {};
}

Result<std::vector<BatchOperation>> read_json_batch(std::string_view body) {
  if (!is_valid_utf8(body)) return bad_request("The batch request is not valid UTF-8.");
  std::vector<BatchOperation> operations;
  Splitter splitter(body);
  ORRERY_TRY(splitter.array([&](std::string_view element, std::size_t begin) -> Result<> {
    ORRERY_TRY(check_batch_size(operations.size() + 1));
    OperationReader reader(operations.size() + 1);
    ORRERY_TRY(Splitter(body.substr(0, begin + element.size()), begin)
                   .object([&](const std::string& name, std::string_view value) {
                     return reader.take(name, value);
                   }));
    ORRERY_TRY(auto operation, std::move(reader).done());
    operations.push_back(std::move(operation));
    return {};
  }));
  ORRERY_TRY(splitter.end());
  ORRERY_TRY(check_batch_size(operations.size()));
  return operations;
}

std::string write_json_batch(std::span<const BatchResult> results) {
  std::string out = "[";
  const auto append = std::back_inserter(out);
  for (const BatchResult& result : results) {
    if (out.size() > 1) out += ',';
    fmt::format_to(append, R"({{"statusCode":{})", result.status);
    if (result.substatus != 0) fmt::format_to(append, R"(,"subStatusCode":{})", result.substatus);
    fmt::format_to(append, R"(,"requestCharge":{})",
                   static_cast<double>(result.charge_hundredths) / 100.0);
    if (!result.etag.empty()) {
      out += R"(,"eTag":)";
      json::append_quoted(out, result.etag);
    }
    if (result.retry_after_ms != 0) {
      fmt::format_to(append, R"(,"retryAfterMilliseconds":{})", result.retry_after_ms);
    }
    if (!result.message.empty()) {
      out += R"(,"message":)";
      json::append_quoted(out, result.message);
    }
    if (!result.resource_body.empty())
      out.append(R"(,"resourceBody":)").append(result.resource_body);
    out += '}';
  }
  out += ']';
  return out;
}

}  // namespace orrery
