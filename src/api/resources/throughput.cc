#include "api/resources/throughput.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "protocol/wire/headers.h"
#include "protocol/wire/resource_body.h"

namespace orrery::api {
namespace {

Result<> check_manual(std::int64_t units, std::int64_t minimum) {
  if (units >= minimum && units <= kThroughputMax && units % 100 == 0) return {};
  return Error(
      ErrorCode::BadRequest,
      fmt::format("The offer throughput {} is not possible: it must be between {} and {} "
                  "inclusive in increments of 100. (For a range alone: between 400 and 10000 "
                  "inclusive in increments of 100.)",
                  units, minimum, kThroughputMax));
}

Result<> check_autoscale(std::int64_t units) {
  if (units >= kAutoscaleMin && units <= kThroughputMax && units % 1000 == 0) return {};
  if (units < kAutoscaleMin) {
    // Clients look for these words.
    return Error(ErrorCode::BadRequest,
                 fmt::format("Requested throughput {} is less than required minimum throughput {}: "
                             "maxThroughput must be between {} and {} in increments of 1000.",
                             units, kAutoscaleMin, kAutoscaleMin, kThroughputMax));
  }
  return Error(
      ErrorCode::BadRequest,
      fmt::format("The autoscale maximum {} is not possible: maxThroughput must be between {} "
                  "and {} in increments of 1000.",
                  units, kAutoscaleMin, kThroughputMax));
}

/// {"maxThroughput":4000,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":10}}}
Result<catalog::Throughput> parse_autoscale(const Json& settings) {
  catalog::Throughput throughput;
  const Json* maximum = find_member(settings, "maxThroughput");
  const auto units = maximum ? integer_in(*maximum, INT32_MIN, INT32_MAX) : std::nullopt;
  if (!units) {
    return Error(ErrorCode::BadRequest,
                 "The autoscale settings need a number 'maxThroughput', as in "
                 "{\"maxThroughput\":4000}.");
  }
  ORRERY_TRY(check_autoscale(*units));
  throughput.autoscale_max = *units;
  if (const Json* policy = find_member(settings, "autoUpgradePolicy")) {
    const Json* throughput_policy = find_member(*policy, "throughputPolicy");
    const Json* percent =
        throughput_policy ? find_member(*throughput_policy, "incrementPercent") : nullptr;
    const auto increment = percent ? integer_in(*percent, 0, 100) : std::nullopt;
    if (!increment) {
      return Error(
          ErrorCode::BadRequest,
          "autoUpgradePolicy must be {\"throughputPolicy\":{\"incrementPercent\":n}} with n "
          "from 0 to 100.");
    }
    throughput.increment_percent = *increment;
  }
  return throughput;
}

}  // namespace

Result<std::optional<catalog::Throughput>> requested_throughput(const Context& context) {
  const auto manual = context.header(headers::kOfferThroughput);
  const auto autoscale = context.header(headers::kAutopilotSettings);
  const auto legacy = context.header(headers::kOfferType);
  if (!manual.empty() && !autoscale.empty()) {
    return Error(
        ErrorCode::BadRequest,
        "x-ms-offer-throughput and x-ms-cosmos-offer-autopilot-settings exclude each other: "
        "send one of them.");
  }
  catalog::Throughput throughput;
  if (!manual.empty()) {
    std::int64_t units = 0;
    const auto [end, failure] =
        std::from_chars(manual.data(), manual.data() + manual.size(), units);
    if (failure != std::errc() || end != manual.data() + manual.size()) {
      return Error(ErrorCode::BadRequest,
                   fmt::format("x-ms-offer-throughput must be a whole number, not '{}'.", manual));
    }
    ORRERY_TRY(check_manual(units, kThroughputMin));
    throughput.manual = units;
    return std::optional(throughput);
  }
  if (!autoscale.empty()) {
    ORRERY_TRY(const auto settings, parse_resource_body(autoscale));
    ORRERY_TRY(throughput, parse_autoscale(settings));
    return std::optional(throughput);
  }
  if (!legacy.empty()) {
    if (legacy == "Invalid") return std::optional<catalog::Throughput>();
    if (legacy != "S1" && legacy != "S2" && legacy != "S3") {
      return Error(ErrorCode::BadRequest,
                   fmt::format("x-ms-offer-type must be S1, S2 or S3, not '{}'.", legacy));
    }
    throughput.legacy_type = legacy;
    return std::optional(throughput);
  }
  return std::optional<catalog::Throughput>();
}

std::int64_t minimum_throughput(const catalog::Offer& offer) {
  const std::int64_t hundredth = (offer.highest_ever / 100 + 99) / 100 * 100;
  return std::max(kThroughputMin, hundredth);
}

Result<catalog::Throughput> replaced_throughput(const Context& context,
                                                const catalog::Offer& current, const Json& body) {
  catalog::Throughput throughput;
  ORRERY_TRY(const bool to_autoscale, context.flag(headers::kMigrateToAutopilot));
  ORRERY_TRY(const bool to_manual, context.flag(headers::kMigrateToManual));
  if (to_autoscale && to_manual) {
    return Error(ErrorCode::BadRequest,
                 "An offer can migrate to autoscale or to manual throughput, "
                 "not to both.");
  }
  const std::int64_t units = current.throughput.request_units();
  if (to_autoscale) {
    throughput.autoscale_max = std::max(kAutoscaleMin, (units + 999) / 1000 * 1000);
    return throughput;
  }
  if (to_manual) {
    throughput.manual = std::max(kThroughputMin, units);
    return throughput;
  }
  const Json* version = find_member(body, "offerVersion");
  const Json* type = find_member(body, "offerType");
  const bool legacy = version != nullptr && version->is_string() && *version == "V1";
  if (legacy) {
    if (type == nullptr || !is_one_of(*type, {"S1", "S2", "S3"})) {
      return Error(ErrorCode::BadRequest, "A V1 offer has the offerType S1, S2 or S3.");
    }
    throughput.legacy_type = type->get<std::string>();
    return throughput;
  }
  const Json* content = find_member(body, "content");
  if (content == nullptr) {
    return Error(ErrorCode::BadRequest,
                 "The offer needs 'content' with 'offerThroughput' or 'offerAutopilotSettings'.");
  }
  if (const Json* settings = find_member(*content, "offerAutopilotSettings")) {
    return parse_autoscale(*settings);
  }
  const Json* units_member = find_member(*content, "offerThroughput");
  const auto wanted = units_member ? integer_in(*units_member, INT32_MIN, INT32_MAX) : std::nullopt;
  if (!wanted) {
    return Error(ErrorCode::BadRequest, "content.offerThroughput must be a whole number.");
  }
  ORRERY_TRY(check_manual(*wanted, minimum_throughput(current)));
  throughput.manual = *wanted;
  return throughput;
}

}  // namespace orrery::api
