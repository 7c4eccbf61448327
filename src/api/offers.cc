#include <algorithm>
#include <cctype>
#include <regex>

#include <fmt/format.h>

#include "api/handlers.h"
#include "api/reply.h"
#include "api/resource_list.h"
#include "api/throughput.h"
#include "protocol/resource_body.h"

namespace orrery::api::offers {
namespace {

std::string owner_self(const Rid& owner) {
  const std::string database = "dbs/" + owner.database_rid().text() + "/";
  if (owner.kind() == RidKind::Database) return database;
  return database + "colls/" + owner.text() + "/";
}

Json to_wire(const catalog::Offer& offer) {
  const auto& throughput = offer.throughput;
  const bool legacy = !throughput.legacy_type.empty();
  const std::string rid = offer.rid.text();
  Json body = {{"offerVersion", legacy ? "V1" : "V2"},
               {"offerType", legacy ? throughput.legacy_type : "Invalid"},
               {"resource", owner_self(offer.owner)},
               {"offerResourceId", offer.owner.text()}};
  if (!legacy) {
    // An autoscale offer rests at a tenth of its maximum.
    const auto current = throughput.manual.value_or(throughput.autoscale_max.value_or(0) / 10);
    Json content = {{"offerThroughput", current},
                    {"offerIsRUPerMinuteThroughputEnabled", false},
                    {"offerMinimumThroughputParameters",
                     {{"maxThroughputEverProvisioned", offer.highest_ever},
                      {"maxConsumedStorageEverInKB", 0}}}};
    if (throughput.autoscale_max) {
      Json settings = {{"tier", 0},
                       {"maximumTierThroughput", 0},
                       {"autoUpgrade", false},
                       {"maxThroughput", *throughput.autoscale_max}};
      if (throughput.increment_percent) {
        settings["autoUpgradePolicy"]["throughputPolicy"]["incrementPercent"] =
            *throughput.increment_percent;
      }
      content["offerAutopilotSettings"] = std::move(settings);
    }
    body["content"] = std::move(content);
  }
  body["id"] = rid;
  body["_rid"] = rid;
  body["_self"] = "offers/" + rid + "/";
  body["_etag"] = offer.etag().text();
  body["_ts"] = offer.ts;
  return body;
}

http::Response show(const Services& services, Context& context, const catalog::Offer& offer) {
  auto response = reply(context, 200, to_wire(offer).dump());
  response.add(headers::kEtag.text, offer.etag().text());
  response.add(headers::kMinThroughput.text, static_cast<std::uint64_t>(minimum_throughput(offer)));
  // More throughput than the ranges serve is stored and stays pending until they have been split.
  response.add(headers::kOfferReplacePending.text,
               services.catalog.needs_more_ranges(offer) ? "true" : "false");
  return response;
}

Result<catalog::OfferPtr> find(const Services& services, const Context& context) {
  const std::string& id = context.path.names[0];
  const auto rid = Rid::parse(id);
  if (!rid || rid->kind() != RidKind::Offer) {
    return Error(
        ErrorCode::BadRequest,
        fmt::format("'{}' is not the id of an offer: take it from the list of offers.", id));
  }
  auto offer = services.catalog.offer(*rid);
  if (!offer) {
    return Error(ErrorCode::NotFound,
                 fmt::format("Resource Not Found. There is no offer '{}'.", id));
  }
  return offer;
}

/// Which offers a query asks for. Until there is a query engine, the texts that SDKs send.
struct Filter {
  std::string member;  ///< empty: all of them
  std::string value;
};

Result<Filter> parse_query(const Context& context) {
  static const std::regex kAll(R"(\s*select\s+\*\s+from\s+\w+(\s+(as\s+)?\w+)?\s*)",
                               std::regex::icase | std::regex::optimize);
  static const std::regex kOne(R"(\s*select\s+\*\s+from\s+\w+(?:\s+(?:as\s+)?\w+)?\s+where\s+\w+\.)"
                               R"re((resource|offerResourceId|id|_rid|_self)\s*=\s*)re"
                               R"re((?:(@\w+)|"([^"\\]*)"|'([^'\\]*)')\s*)re",
                               std::regex::icase | std::regex::optimize);
  // The pattern matcher recurses over its input: the texts it is for are short.
  constexpr std::size_t kTextMax = 512;

  std::string text;
  Json parameters = Json::array();
  if (context.header(headers::kContentType).starts_with("application/sql")) {
    text = context.request.body;
  } else {
    ORRERY_TRY(const auto body, parse_resource_body(context.request.body));
    const Json* query = find_member(body, "query");
    if (query == nullptr || !query->is_string()) {
      return Error(ErrorCode::BadRequest,
                   "The body of a query is {\"query\":\"…\",\"parameters\":[…]}.");
    }
    text = query->get<std::string>();
    if (const Json* given = find_member(body, "parameters"); given && given->is_array()) {
      parameters = *given;
    }
  }
  std::smatch match;
  if (text.size() <= kTextMax && std::regex_match(text, kAll)) return Filter{};
  if (text.size() > kTextMax || !std::regex_match(text, match, kOne)) {
    return Error(
        ErrorCode::NotImplemented,
        "Queries are not implemented yet. Offers can be queried by resource, "
        "offerResourceId or id, as the SDKs do it: SELECT * FROM r WHERE r.resource = @link");
  }
  Filter filter{match[1], match[3].matched ? match[3] : match[4]};
  if (match[2].matched) {
    const std::string name = match[2];
    const auto parameter = std::ranges::find_if(parameters, [&](const Json& each) {
      const Json* given = find_member(each, "name");
      return given != nullptr && given->is_string() && *given == name;
    });
    const Json* value = parameter == parameters.end() ? nullptr : find_member(*parameter, "value");
    if (value == nullptr || !value->is_string()) {
      return Error(ErrorCode::BadRequest,
                   fmt::format("The query uses {}, but the parameters have no such string.", name));
    }
    filter.value = value->get<std::string>();
  }
  return filter;
}

bool matches(const catalog::Offer& offer, const Filter& filter) {
  if (filter.member == "resource") return owner_self(offer.owner) == filter.value;
  if (filter.member == "offerResourceId") return offer.owner.text() == filter.value;
  if (filter.member == "_self") return "offers/" + offer.rid.text() + "/" == filter.value;
  return offer.rid.text() == filter.value;
}

}  // namespace

Result<http::Response> list(Services& services, Context& context) {
  return list_page(
      context, "", "Offers",
      [&](std::string_view after, std::size_t count) {
        return services.catalog.offers(after, count);
      },
      [](const catalog::Offer& offer) { return to_wire(offer).dump(); },
      [](const catalog::Offer& offer) { return offer.rid; });
}

Result<http::Response> query(Services& services, Context& context) {
  ORRERY_TRY(const auto filter, parse_query(context));
  if (filter.member.empty()) return list(services, context);
  std::string body;
  std::size_t count = 0;
  open_feed(body, "", "Offers");
  for (const auto& offer : services.catalog.offers({}, SIZE_MAX)) {
    if (!matches(*offer, filter)) continue;
    if (count > 0) body.push_back(',');
    body += to_wire(*offer).dump();
    ++count;
  }
  close_feed(body, count);
  auto response = reply(context, 200, std::move(body));
  response.add(headers::kItemCount.text, count);
  return response;
}

Result<http::Response> read(Services& services, Context& context) {
  ORRERY_TRY(const auto offer, find(services, context));
  return show(services, context, *offer);
}

Async<http::Response> replace(Services& services, Context& context) {
  ORRERY_CO_TRY(const auto offer, find(services, context));
  ORRERY_CO_TRY(const auto body, parse_resource_body(context.request.body));
  const std::string rid = offer->rid.text();
  for (const auto* member : {"id", "_rid"}) {
    const Json* value = find_member(body, member);
    if (value == nullptr || *value != rid) {
      co_return Error(ErrorCode::BadRequest,
                      fmt::format("The body's '{}' must be '{}', as in the address: send the whole "
                                  "offer as it was read, with its throughput changed.",
                                  member, rid));
    }
  }
  ORRERY_CO_TRY(const auto throughput, replaced_throughput(context, *offer, body));
  ORRERY_CO_TRY(const auto replaced, co_await run_blocking(services.blocking, [&] {
                  return services.catalog.replace_offer(
                      offer->rid, context.header(headers::kIfMatch), throughput);
                }));
  context.charge = kMetadataWrite;
  co_return show(services, context, *replaced);
}

}  // namespace orrery::api::offers
