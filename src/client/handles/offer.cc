#include "client/handles/offer.h"

#include <algorithm>
#include <utility>

#include "client/exchange/call_time.h"
#include "client/handles/resource.h"
#include "protocol/wire/headers.h"

namespace orrery::client {
namespace {

std::optional<std::int64_t> integer_at(const json::Value& object, std::string_view member) {
  const json::Value value = object.member(member);
  if (!value.is_number()) return {};
  const json::Number number = value.as_number();
  return number.is_integer ? number.integer
                           : static_cast<std::int64_t>(std::clamp(number.real, -1e15, 1e15));
}

void check_one_of_two(const Throughput& throughput) {
  if (throughput.manual.has_value() == throughput.autoscale_max.has_value()) {
    refuse_argument("Throughput is either manual or autoscale: give one of the two.");
  }
}

/// The offer of a resource, with what the answer told besides.
struct FoundOffer {
  Answer answer;
  Offer offer;
};

FoundOffer find_offer(Pipeline& pipeline, const std::string& resource_rid,
                      const RequestOptions& options) {
  Call call{.type = "offers", .link = "", .list = true};
  turn_into_query(call, Query("SELECT * FROM root r WHERE r.offerResourceId = @rid",
                              {{"@rid", json_string(resource_rid)}}));
  ListOptions list_options;
  set_request_options(list_options, options);
  FoundOffer found;
  bool is_there = false;
  found.answer =
      list_page(pipeline, std::move(call), list_options, {}, "Offers", [&](const auto& body) {
        found.offer = offer_of(body);
        is_there = true;
      });
  if (is_there) return found;
  CosmosException::Details details;
  details.status = 404;
  details.code = "NotFound";
  details.activity_id = found.answer.activity_id;
  details.request_charge = found.answer.request_charge;
  details.diagnostics = found.answer.diagnostics.to_string();
  throw CosmosException(
      "There is no throughput of its own: no offer is for the resource '" + resource_rid + "'.",
      std::move(details));
}

/// The offer as it was read, with this as its `content`.
std::string with_content(const Offer& offer, json::Value content) {
  json::Value body = json::Value::of_checked(offer.json);
  body.set_member("content", std::move(content));
  return body.to_text();
}

Answer put_offer(Pipeline& pipeline, const Offer& offer, json::Value content, HeaderList headers,
                 const RequestOptions& options) {
  Call call{.method = "PUT", .type = "offers", .link = "offers/" + offer.id};
  call.headers = std::move(headers);
  call.headers.emplace_back(headers::kContentType.text, "application/json");
  call.body = with_content(offer, std::move(content));
  call.writes = true;
  return pipeline.send(call, options);
}

json::Value autoscale_content(std::int64_t units_max) {
  json::Value settings = json::Value::object();
  settings.set_member("maxThroughput", json::Value::number(units_max));
  json::Value content = json::Value::object();
  content.set_member("offerAutopilotSettings", std::move(settings));
  return content;
}

json::Value manual_content(std::int64_t units) {
  json::Value content = json::Value::object();
  content.set_member("offerThroughput", json::Value::number(units));
  return content;
}

json::Value content_of(const Throughput& throughput) {
  return throughput.manual ? manual_content(*throughput.manual)
                           : autoscale_content(*throughput.autoscale_max);
}

}  // namespace

void add_throughput(HeaderList& headers, const Throughput& throughput) {
  check_one_of_two(throughput);
  if (throughput.manual) {
    headers.emplace_back(headers::kOfferThroughput.text, std::to_string(*throughput.manual));
  } else {
    headers.emplace_back(headers::kAutopilotSettings.text,
                         R"({"maxThroughput":)" + std::to_string(*throughput.autoscale_max) + "}");
  }
}

Offer offer_of(const json::Value& body) {
  Offer offer;
  offer.id = body.member("id").string_or_empty();
  offer.rid = body.member("_rid").string_or_empty();
  offer.resource_link = body.member("resource").string_or_empty();
  offer.json = body.to_text();
  const json::Value content = body.member("content");
  offer.throughput.autoscale_max =
      integer_at(content.member("offerAutopilotSettings"), "maxThroughput");
  // Of an autoscale offer this is what it is scaled to at the moment.
  if (!offer.throughput.autoscale_max) {
    offer.throughput.manual = integer_at(content, "offerThroughput");
  }
  return offer;
}

Response<Throughput> read_throughput_of(Pipeline& pipeline, const std::string& resource_rid,
                                        const RequestOptions& options) {
  FoundOffer found = find_offer(pipeline, resource_rid, options);
  return respond(found.answer, found.offer.throughput);
}

Response<Throughput> replace_throughput_of(Pipeline& pipeline, const std::string& resource_rid,
                                           const Throughput& throughput,
                                           const RequestOptions& options) {
  check_one_of_two(throughput);
  const CallTime time(options);
  FoundOffer found = find_offer(pipeline, resource_rid, time.for_next_request());
  const bool to_autoscale = throughput.autoscale_max && !found.offer.throughput.autoscale_max;
  const bool to_manual = throughput.manual && found.offer.throughput.autoscale_max;
  if (to_autoscale || to_manual) {
    // The service chooses the new value of an offer that changes its kind; -1 stands for that.
    const auto header = to_autoscale ? headers::kMigrateToAutopilot : headers::kMigrateToManual;
    found.answer =
        put_offer(pipeline, found.offer, to_autoscale ? manual_content(-1) : autoscale_content(-1),
                  {{std::string(header.text), "true"}}, time.for_next_request());
    found.offer = offer_of(body_of(found.answer));
  }
  const bool is_as_wanted = found.offer.throughput.manual == throughput.manual &&
                            found.offer.throughput.autoscale_max == throughput.autoscale_max;
  if (!is_as_wanted) {
    found.answer =
        put_offer(pipeline, found.offer, content_of(throughput), {}, time.for_next_request());
    found.offer = offer_of(body_of(found.answer));
  }
  return respond(found.answer, found.offer.throughput);
}

}  // namespace orrery::client
