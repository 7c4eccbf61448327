#include "cli/leases/leases_table.h"

#include <algorithm>
#include <array>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "processor/leases/lease.h"

namespace orrery::cli {
namespace {

using Json = nlohmann::ordered_json;
using processor::LeaseLag;

constexpr std::size_t kColumns = 8;
using Row = std::array<std::string, kColumns>;
constexpr std::size_t kNumbersFrom = 4;  // From here on columns are aligned to the right.
const Row kHead = {"LEASE", "OWNER", "POSITION", "RENEWED", "EPOCH", "PENDING", "BYTES", "AGE"};

const LeaseLag* find_lag(const GroupStatus& status, const std::string& token) {
  const auto found = std::ranges::find(status.lag, token, &LeaseLag::lease_token);
  return found == status.lag.end() ? nullptr : &*found;
}

std::string seconds_text(std::chrono::seconds time) { return fmt::format("{} s", time.count()); }

Row row_of(const processor::LeaseGroup::Lease& lease, const LeaseLag* lag, WallTime now) {
  Row row;
  row[0] = lease.token;
  row[1] = lease.owner.empty() ? "nobody" : lease.owner;
  row[2] = lease.position.empty() ? "none" : std::string(processor::plain_position(lease.position));
  row[3] = "never";
  if (lease.renewed) {
    // Clocks of two machines: one may be ahead.
    const auto ago = std::max(std::chrono::floor<std::chrono::seconds>(now - *lease.renewed),
                              std::chrono::seconds(0));
    row[3] = seconds_text(ago) + " ago";
  }
  row[4] = fmt::format("{}", lease.epoch);
  if (lag == nullptr) return row;
  row[5] = fmt::format("{}{}", lag->exact ? "" : "~", lag->documents);
  if (lag->bytes) row[6] = fmt::format("{}", *lag->bytes);
  if (lag->age) row[7] = lag->documents == 0 ? "-" : seconds_text(*lag->age);
  return row;
}

}  // namespace

std::string status_table(const GroupStatus& status, WallTime now) {
  std::vector<Row> rows = {kHead};
  std::uint64_t documents = 0;
  for (const auto& lease : status.leases) {
    const LeaseLag* lag = find_lag(status, lease.token);
    if (lag != nullptr) documents += lag->documents;
    rows.push_back(row_of(lease, lag, now));
  }
  std::array<std::size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < kColumns; ++i) {
      line += i < kNumbersFrom ? fmt::format("{:<{}}", row[i], widths[i])
                               : fmt::format("{:>{}}", row[i], widths[i]);
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  text += fmt::format("{}, {} pending{}\n", counted(status.leases.size(), "lease"),
                      counted(documents, "document"), status.paused ? ", the group is PAUSED" : "");
  return text;
}

std::string status_json(const GroupStatus& status) {
  Json json;
  json["group"] = status.group;
  json["paused"] = status.paused;
  json["leases"] = Json::array();
  for (const auto& lease : status.leases) {
    Json each;
    each["lease"] = lease.token;
    each["id"] = lease.id;
    each["owner"] = lease.owner.empty() ? Json() : Json(lease.owner);
    each["position"] = lease.position.empty()
                           ? Json()
                           : Json(std::string(processor::plain_position(lease.position)));
    each["renewed"] =
        lease.renewed
            ? Json(fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                               fmt::gmtime(std::chrono::system_clock::to_time_t(*lease.renewed))))
            : Json();
    each["epoch"] = lease.epoch;
    if (const LeaseLag* lag = find_lag(status, lease.token)) {
      each["pendingDocuments"] = lag->documents;
      each["pendingBytes"] = lag->bytes ? Json(*lag->bytes) : Json();
      each["ageSeconds"] = lag->age ? Json(lag->age->count()) : Json();
      each["exact"] = lag->exact;
    }
    json["leases"].push_back(std::move(each));
  }
  return json.dump(2) + "\n";
}

}  // namespace orrery::cli
