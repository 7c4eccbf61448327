#include "protocol/wire/resource_body.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace orrery {
namespace {

constexpr int kNestingMax = 128;
constexpr std::size_t kIdCharactersMax = 255;

bool is_continuation_byte(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }
bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

/// Sees each event of the parser before it is stored, and once a limit is passed has nothing more
/// stored.
class Limits {
 public:
  bool admit(int depth, Json::parse_event_t event) {
    switch (event) {
      case Json::parse_event_t::object_start:
        member_counts_.push_back(0);
        too_deep_ |= depth >= kNestingMax;
        break;
      case Json::parse_event_t::array_start:
        too_deep_ |= depth >= kNestingMax;
        break;
      case Json::parse_event_t::object_end:
        member_counts_.pop_back();
        break;
      case Json::parse_event_t::key:
        too_many_ |= ++member_counts_.back() > kObjectMembersMax || ++total_ > kBodyMembersMax;
        break;
      default:
        break;
    }
    return !too_deep_ && !too_many_;
  }

  bool too_deep() const { return too_deep_; }
  bool too_many() const { return too_many_; }

 private:
  std::vector<std::size_t> member_counts_;  ///< of the objects that are open
  std::size_t total_ = 0;
  bool too_deep_ = false;
  bool too_many_ = false;
};

}  // namespace

Result<Json> parse_resource_body(std::string_view body) {
  if (body.starts_with("\xEF\xBB\xBF")) {
    return bad_request("The body begins with a byte order mark; it must be plain UTF-8.");
  }
  Limits limits;
  const auto admit = [&limits](int depth, Json::parse_event_t event, Json&) {
    return limits.admit(depth, event);
  };
  constexpr bool kThrow = false;
  Json json = Json::parse(body.begin(), body.end(), admit, kThrow);
  if (limits.too_deep()) {
    return bad_request(fmt::format("The body is nested deeper than {} levels.", kNestingMax));
  }
  if (limits.too_many()) {
    return bad_request(
        fmt::format("The body has more than {} members, or more than {} in one object.",
                    kBodyMembersMax, kObjectMembersMax));
  }
  if (json.is_discarded()) return bad_request("The body is not valid JSON in UTF-8.");
  if (!json.is_object()) return bad_request("The body is not a JSON object.");
  return json;
}

Result<std::string> parse_resource_id(const Json& body) {
  const auto member = body.is_object() ? body.find("id") : body.end();
  if (member == body.end()) {
    return bad_request(
        "The input content is invalid because the required properties - 'id; ' - are missing");
  }
  if (!member->is_string()) return bad_request("The member 'id' must be a string.");
  const auto& id = member->get_ref<const std::string&>();
  if (id.empty()) return bad_request("The member 'id' must not be empty.");
  const auto characters =
      id.size() - static_cast<std::size_t>(std::ranges::count_if(id, is_continuation_byte));
  if (characters > kIdCharactersMax) {
    // Clients look for the second sentence.
    return bad_request(fmt::format(
        "The member 'id' has {0} characters. Ensure to provide a unique non-empty string "
        "less than '{1}' characters.",
        characters, kIdCharactersMax));
  }
  if (id.find_first_of("/\\?#") != std::string::npos) {
    return bad_request("The member 'id' must not contain '/', '\\', '?' or '#'.");
  }
  if (std::ranges::any_of(id, is_control)) {
    return bad_request("The member 'id' must not contain control characters.");
  }
  if (id.back() == ' ') return bad_request("The member 'id' must not end with a space.");
  return id;
}

const Json* find_member(const Json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto member = object.find(name);
  return member == object.end() || member->is_null() ? nullptr : &*member;
}

std::optional<std::int64_t> integer_in(const Json& value, std::int64_t min, std::int64_t max) {
  std::int64_t integer = 0;
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (max < 0 || number > static_cast<std::uint64_t>(max)) return std::nullopt;
    integer = static_cast<std::int64_t>(number);
  } else if (value.is_number_integer()) {
    integer = value.get<std::int64_t>();
  } else if (value.is_number_float()) {
    const auto number = value.get<double>();
    constexpr double kExact = 9007199254740992.0;  // 2^53: above it fractions are lost unseen.
    if (!(std::abs(number) <= kExact) || number != std::trunc(number)) return std::nullopt;
    integer = static_cast<std::int64_t>(number);
  } else {
    return std::nullopt;
  }
  if (integer < min || integer > max) return std::nullopt;
  return integer;
}

bool is_one_of(const Json& value, std::initializer_list<std::string_view> words) {
  if (!value.is_string()) return false;
  const std::string text = lower_case(value.get_ref<const std::string&>());
  return std::ranges::any_of(words,
                             [&](std::string_view word) { return lower_case(word) == text; });
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

}  // namespace orrery
