// JsonText: what calls take that want JSON.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace orrery::client {

/// A value of a JSON library that writes itself as text, as nlohmann::json does.
template <typename T>
concept WritesJson = requires(const T& value) {
  { value.dump() } -> std::same_as<std::string>;
};

/// JSON for a call: text, which is sent as it is, or a value of nlohmann::json or its like. A text
/// is not copied, so it must outlive this. Only for parameters.
class JsonText {
 public:
  JsonText(std::string_view text) : text_(text) {}
  JsonText(const std::string& text) : text_(std::string_view(text)) {}
  JsonText(std::string&& text) : text_(std::move(text)) {}
  JsonText(const char* text) : text_(std::string_view(text)) {}
  template <WritesJson T>
  JsonText(const T& value) : text_(value.dump()) {}

  std::string_view view() const {
    const auto* own = std::get_if<std::string>(&text_);
    return own != nullptr ? std::string_view(*own) : std::get<std::string_view>(text_);
  }
  /// The text, to be kept.
  std::string take() && {
    auto* own = std::get_if<std::string>(&text_);
    return own != nullptr ? std::move(*own) : std::string(std::get<std::string_view>(text_));
  }

 private:
  std::variant<std::string_view, std::string> text_;
};

}  // namespace orrery::client
