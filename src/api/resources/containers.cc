#include <fmt/format.h>

#include "api/handlers.h"
#include "api/query/query_request.h"
#include "api/reply.h"
#include "api/resources/resource_list.h"
#include "api/resources/throughput.h"
#include "api/target.h"
#include "executor/container_settings.h"
#include "maintenance/index_builder.h"
#include "protocol/container/container_definition.h"

namespace orrery::api::containers {
namespace {

Json to_wire(const Context& context, const catalog::Container& container) {
  Json body = container.definition.to_wire(context.api_version);
  body["_rid"] = container.rid_text;
  body["_ts"] = container.ts;
  body["_self"] = container.self();
  body["_etag"] = container.etag().text();
  body["_docs"] = "docs/";
  body["_sprocs"] = "sprocs/";
  body["_triggers"] = "triggers/";
  body["_udfs"] = "udfs/";
  body["_conflicts"] = "conflicts/";
  return body;
}

void add_headers(http::Response& response, const Services& services,
                 const catalog::Container& container) {
  response.add(headers::kEtag.text, container.etag().text());
  // Those of the database: a container's own would be taken for those of its items.
  response.add(headers::kAltContentPath.text, percent_encode_path("dbs/" + container.database_id));
  response.add(headers::kContentPath.text, container.rid.database_rid().text());
  const int progress =
      services.index_builder == nullptr ? 100 : services.index_builder->progress(container.rid);
  response.add(headers::kIndexTransformationProgress.text, static_cast<std::uint64_t>(progress));
  if (container.definition.lazily_indexed()) {
    response.add(headers::kLazyIndexingProgress.text, "100");
  }
}

http::Response show(const Services& services, Context& context, int status,
                    const catalog::Container& container) {
  auto response = reply(context, status, to_wire(context, container).dump());
  add_headers(response, services, container);
  return response;
}

Json statistics(const catalog::Container& container) {
  Json statistics = Json::array();
  for (const catalog::Range& range : container.ranges.all()) {
    statistics.push_back({{"id", range.id.text()},
                          {"sizeInKB", range.partition->text_bytes() / 1024},
                          {"documentCount", range.partition->documents()},
                          {"sampledDistinctPartitionKeyCount", 0},
                          {"partitionKeys", Json::array()}});
  }
  return statistics;
}

}  // namespace

Async<http::Response> create(Services& services, Context& context) {
  const auto& database = context.target.database;
  ORRERY_CO_TRY(const auto body, parse_resource_body(context.request.body));
  ORRERY_CO_TRY(auto definition, ContainerDefinition::create(body, context.api_version));
  ORRERY_CO_TRY(executor::check_computed_properties(definition));
  ORRERY_CO_TRY(auto throughput, requested_throughput(context));
  ORRERY_CO_TRY(auto container, co_await run_blocking(services.blocking, [&] {
                  return services.catalog.create_container(database->rid, std::move(definition),
                                                           throughput);
                }));
  context.charge = kMetadataWrite;
  co_return show(services, context, 201, *container);
}

Result<http::Response> list(Services& services, Context& context) {
  ORRERY_TRY(check_consistency(context));
  const auto& database = context.target.database;
  auto response = list_page(
      context, database->rid.text(), "DocumentCollections",
      [&](std::string_view after, std::size_t count) {
        return services.catalog.containers(database->rid, after, count);
      },
      [&](const catalog::Container& container) { return to_wire(context, container).dump(); },
      [](const catalog::Container& container) { return container.rid; });
  if (response) response->add(headers::kResourceQuota.text, "collections=5000;");
  return response;
}

Result<http::Response> read(Services& services, Context& context) {
  ORRERY_TRY(check_consistency(context));
  const auto& container = context.target.container;
  ORRERY_TRY(const bool with_quota, context.flag(headers::kPopulateQuotaInfo));
  ORRERY_TRY(const bool with_statistics, context.flag(headers::kPopulatePartitionStatistics));
  const auto condition = context.header(headers::kIfNoneMatch);
  if (!condition.empty() && container->etag().matches(condition)) {
    auto response = reply(context, 304);
    add_headers(response, services, *container);
    return response;
  }
  Json body = to_wire(context, *container);
  if (with_statistics) body["statistics"] = statistics(*container);
  auto response = reply(context, 200, body.dump());
  add_headers(response, services, *container);
  // The SDK of 2017 takes the session of a container that another client made from here, and its
  // own tests insist; later ones must not see a token (sdk.documentdb_own, sessionTests).
  if (context.token_form == SessionTokenForm::Simple && is_rid_path(services, context.path)) {
    const catalog::Range& first = container->ranges.all().front();
    std::string token;
    append_session_entry(token, context.token_form, container->session_version, first.id,
                         first.partition->head());
    response.add(headers::kSessionToken.text, token);
  }
  if (with_quota) add_quota(response, *container);
  return response;
}

Async<http::Response> replace(Services& services, Context& context) {
  const auto& container = context.target.container;
  ORRERY_CO_TRY(const auto body, parse_resource_body(context.request.body));
  ORRERY_CO_TRY(auto replaced, co_await run_blocking(services.blocking, [&] {
                  return services.catalog.replace_container(
                      container->rid, context.header(headers::kIfMatch),
                      [&](const ContainerDefinition& current) -> Result<ContainerDefinition> {
                        ORRERY_TRY(auto next, current.replace(body, context.api_version));
                        ORRERY_TRY(executor::check_computed_properties(next));
                        return next;
                      });
                }));
  context.charge = kMetadataWrite;
  co_return show(services, context, 200, *replaced);
}

Async<http::Response> remove(Services& services, Context& context) {
  const auto& container = context.target.container;
  ORRERY_CO_TRY(co_await run_blocking(services.blocking, [&] {
    return services.catalog.delete_container(container->rid, context.header(headers::kIfMatch));
  }));
  context.charge = kMetadataWrite;
  co_return reply(context, 204);
}

}  // namespace orrery::api::containers
