// Bodies of resources other than documents: databases, containers, scripts and the like.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/result.h"

namespace orrery {

/// JSON of resources other than documents: small, and changed by members, which keep their order.
using Json = nlohmann::ordered_json;

/// Looking for a member compares with each one before it, so bodies with very many are refused.
inline constexpr std::size_t kObjectMembersMax = 1000;
inline constexpr std::size_t kBodyMembersMax = 50'000;

/// Parses the body of such a resource. BadRequest for broken JSON or UTF-8, nesting over 128, more
/// members than the limits above, or anything but an object.
Result<Json> parse_resource_body(std::string_view body);

/// The rules for ids of databases, containers and the like: a string of 1 to 255 characters
/// without / \ ? # or control characters, not ending in a space. BadRequest otherwise, naming the
/// rule.
Result<std::string> parse_resource_id(const Json& body);

/// The member, or nullptr when there is none, it is null, or `object` is not an object.
const Json* find_member(const Json& object, std::string_view name);

/// A number without a fraction in [min, max], however it was written; nothing for all else.
std::optional<std::int64_t> integer_in(const Json& value, std::int64_t min, std::int64_t max);

/// Whether `value` is a string that is one of `words`, in any case.
bool is_one_of(const Json& value, std::initializer_list<std::string_view> words);

std::string lower_case(std::string_view text);

}  // namespace orrery
