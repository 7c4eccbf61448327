#include <fmt/format.h>

#include "api/handlers.h"
#include "api/reply.h"
#include "api/resources/resource_list.h"
#include "api/resources/throughput.h"
#include "protocol/wire/resource_body.h"

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
               catalog::needs_more_ranges(services.catalog, offer) ? "true" : "false");
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
  auto offer = services.catalog.offers().find(*rid);
  if (!offer) {
    return Error(ErrorCode::NotFound,
                 fmt::format("Resource Not Found. There is no offer '{}'.", id));
  }
  return offer;
}

}  // namespace

Result<http::Response> list(Services& services, Context& context) {
  return list_page(
      context, "", "Offers",
      [&](std::string_view after, std::size_t count) {
        return services.catalog.offers().list(after, count);
      },
      [](const catalog::Offer& offer) { return to_wire(offer).dump(); },
      [](const catalog::Offer& offer) { return offer.rid; });
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
                  return services.catalog.offers().replace(
                      offer->rid, context.header(headers::kIfMatch), throughput);
                }));
  context.charge = kMetadataWrite;
  co_return show(services, context, *replaced);
}

}  // namespace orrery::api::offers
