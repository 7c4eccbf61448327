// Replies: how a command or webhook answers a batch.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "sinks/sink.h"

namespace orrery::sinks {

/// Parses the reply to a batch of `count` documents: a JSON object with no members but done,
/// done_until, retry_after_ms, reject, failed, stop and reason. nullopt: the text is no reply. A
/// reply whose values make no sense is a failure.
std::optional<Delivery> parse_reply(std::string_view text, std::size_t count);

}  // namespace orrery::sinks
