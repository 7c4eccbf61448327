#include "sinks/reply.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace orrery::sinks {
namespace {

using processor::Outcome;
using Json = nlohmann::json;

constexpr std::array<std::string_view, 7> kReplyMembers = {
    "done", "done_until", "retry_after_ms", "reject", "failed", "stop", "reason"};

bool is_true(const Json& reply, const char* member) {
  return reply.contains(member) && reply[member].is_boolean() && reply[member].get<bool>();
}

std::optional<std::uint64_t> whole_number(const Json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<std::uint64_t>();
}

Delivery invalid_reply(std::string_view why) {
  return Delivery::failed(fmt::format("its reply can't be meant: {}", why));
}

Delivery parse_reject(const Json& indices, std::size_t count, std::string reason) {
  if (!indices.is_array()) return invalid_reply("'reject' is no list of indices");
  std::vector<std::size_t> rejected;
  for (const Json& each : indices) {
    const auto index = whole_number(each);
    if (!index || *index >= count) {
      return invalid_reply(fmt::format("'reject' has {}, but the batch has documents 0 to {}",
                                       each.dump(), count - 1));
    }
    rejected.push_back(static_cast<std::size_t>(*index));
  }
  std::ranges::sort(rejected);
  const auto [first, last] = std::ranges::unique(rejected);
  rejected.erase(first, last);
  if (rejected.empty()) return Delivery::done();
  return Delivery::settled(Outcome::reject(std::move(rejected), std::move(reason)));
}

}  // namespace

std::optional<Delivery> parse_reply(std::string_view text, std::size_t count) {
  const Json reply = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!reply.is_object()) return std::nullopt;
  for (const auto& [name, value] : reply.items()) {
    if (std::ranges::find(kReplyMembers, name) == kReplyMembers.end()) return std::nullopt;
  }
  std::string reason;
  if (reply.contains("reason") && reply["reason"].is_string()) reason = reply["reason"];

  if (is_true(reply, "stop")) return Delivery::settled(Outcome::stop(std::move(reason)));
  if (reply.contains("retry_after_ms")) {
    const auto time = whole_number(reply["retry_after_ms"]);
    if (!time) return invalid_reply("'retry_after_ms' is no whole number");
    return Delivery::later(std::move(reason), std::chrono::milliseconds(*time));
  }
  if (is_true(reply, "failed")) return Delivery::failed(std::move(reason));
  if (reply.contains("reject")) return parse_reject(reply["reject"], count, std::move(reason));
  if (reply.contains("done_until")) {
    const auto done = whole_number(reply["done_until"]);
    if (!done || *done > count) {
      return invalid_reply(fmt::format("'done_until' is {}, but the batch has {} documents",
                                       reply["done_until"].dump(), count));
    }
    if (*done == count) return Delivery::done();
    if (*done == 0) return Delivery::failed(reason.empty() ? "nothing was done" : reason);
    return Delivery::settled(Outcome::done_until(static_cast<std::size_t>(*done)));
  }
  return Delivery::done();
}

}  // namespace orrery::sinks
