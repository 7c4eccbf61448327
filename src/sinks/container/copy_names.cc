#include "sinks/container/copy_names.h"

#include <fmt/format.h>

#include "base/fnv1a.h"

namespace orrery::sinks {
namespace {

constexpr std::size_t kGenerationDigits = 8;

std::string hash_text(const std::string& text) { return fmt::format("{:016x}", fnv1a(text)); }

}  // namespace

std::string default_group(const CopyEnds& ends) {
  return "copy-" +
         hash_text(fmt::format("{}\n{}\n{}\n{}\n{}", ends.source_endpoint, ends.source,
                               ends.source_rid, ends.destination_endpoint, ends.destination));
}

std::string destination_generation(const CopyEnds& ends) {
  return hash_text(ends.destination + "\n" + ends.destination_rid).substr(0, kGenerationDigits);
}

}  // namespace orrery::sinks
