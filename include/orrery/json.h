// For programs that use nlohmann::json: documents in and out as its values. Nothing else of the
// client needs that library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "orrery/response.h"

namespace orrery::client {

/// The document of an answer; null when there is none (304, or return_content was false).
inline nlohmann::json to_json(const Response<std::string>& response) {
  return response.value.empty() ? nlohmann::json() : nlohmann::json::parse(response.value);
}

/// The document of an answer, as a type that nlohmann::json converts to.
template <typename T>
T to(const Response<std::string>& response) {
  return to_json(response).template get<T>();
}

/// All documents of a page.
inline std::vector<nlohmann::json> to_json(const ItemPage& page) {
  std::vector<nlohmann::json> items;
  items.reserve(page.size());
  for (const std::string_view item : page) items.push_back(nlohmann::json::parse(item));
  return items;
}

}  // namespace orrery::client
