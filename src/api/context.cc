#include "api/context.h"

#include <atomic>
#include <charconv>
#include <memory>

#include <fmt/format.h>

#include "base/header_name.h"
#include "protocol/wire/headers.h"

namespace orrery::api {

Result<bool> Context::flag(HeaderName name) const {
  const auto value = request.header(name);
  if (value.empty() || value == "0" || equal_ignoring_case(value, "false")) return false;
  if (value == "1" || equal_ignoring_case(value, "true")) return true;
  return Error(ErrorCode::BadRequest,
               fmt::format("The header {} must be true or false, not '{}'.", name.text, value));
}

ClientId client_of(const Context& context) {
  const std::uint64_t key = context.principal.access == Access::ReadOnly ? 1 : 2;
  return {.client = context.request.peer << 2 | key,
          .connection = reinterpret_cast<std::uintptr_t>(context.request.client)};
}

Cancellation when_client_leaves(const Context& context) {
  if (context.request.client == nullptr) return nullptr;
  auto gone = std::make_shared<std::atomic<bool>>(false);
  context.request.client->when_gone([gone] { gone->store(true, std::memory_order_relaxed); });
  return gone;
}

Result<> hold_answer(Context& context, std::size_t bytes) {
  if (context.request.client == nullptr) return {};
  auto held = context.request.client->hold_answer(bytes);
  if (!held) context.retry_after = http::kMemoryRetryAfter;
  return held;
}

Result<std::optional<std::uint32_t>> page_size(const Context& context, std::uint32_t absent) {
  const auto value = context.header(headers::kMaxItemCount);
  if (value.empty()) return std::optional(absent);
  std::int32_t number = 0;
  const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (failure != std::errc() || end != value.data() + value.size() || number < -1) {
    return Error(
        ErrorCode::BadRequest,
        fmt::format("The input PageSize {} is invalid. Ensure to provide a valid page size "
                    "between 1 and {}, or -1 for no limit, in x-ms-max-item-count.",
                    value, INT32_MAX));
  }
  if (number == -1) return std::optional<std::uint32_t>();
  if (number == 0) return std::optional(absent);
  return std::optional(static_cast<std::uint32_t>(number));
}

}  // namespace orrery::api
