// GET /: where clients learn about regions and consistency. They call it before anything else.
#include <fmt/format.h>

#include "api/handlers.h"
#include "api/reply.h"
#include "json/document_text.h"
#include "protocol/wire/headers.h"

namespace orrery::api {
namespace {

constexpr std::string_view kQueryEngineConfiguration =
    R"({"maxSqlQueryInputLength":524288,"maxJoinsPerSqlQuery":10,)"
    R"("maxLogicalAndPerSqlQuery":2147483647,"maxLogicalOrPerSqlQuery":2147483647,)"
    R"("maxUdfRefPerSqlQuery":10,"maxInExpressionItemsCount":2147483647,)"
    R"("queryMaxInMemorySortDocumentCount":500,"maxQueryRequestTimeoutFraction":0.9,)"
    R"("sqlAllowNonFiniteNumbers":false,"sqlAllowAggregateFunctions":true,"sqlAllowSubQuery":true,)"
    R"("sqlAllowScalarSubQuery":true,"allowNewKeywords":true,"sqlAllowLike":true,)"
    R"("sqlAllowGroupByClause":true,"sqlAllowTop":true,"enableSpatialIndexing":true,)"
    R"("maxSpatialQueryCells":2147483647,"spatialMaxGeometryPointCount":256,)"
    R"("sqlDisableOptimizationFlags":0})";

}  // namespace

Result<http::Response> read_account(Services& services, Context& context) {
  ORRERY_TRY(check_consistency(context));
  std::string endpoint = services.advertised_endpoint;
  if (endpoint.empty()) {
    // Clients move all their traffic to this address: the one that they have reached us by works.
    // Python's client compares it with its own endpoint as text. Whether that ends with a slash
    // does not show in the request; it does in the connection strings that we and the service give
    // out. Other clients compare URLs, or nothing.
    const auto host = context.header(headers::kHost);
    if (host.empty()) {
      return Error(
          ErrorCode::BadRequest,
          "The request has no Host header, so that the server cannot tell the client where "
          "to find it. Send one, or start the server with --advertise.");
    }
    endpoint = fmt::format("{}://{}/", context.request.secure ? "https" : "http", host);
  }
  std::string location = R"([{"name":"Local","databaseAccountEndpoint":)";
  json::append_quoted(location, endpoint);
  location += "}]";
  std::string configuration;
  json::append_quoted(configuration, kQueryEngineConfiguration);
  std::string body = fmt::format(
      R"({{"_self":"","id":"orrery","_rid":"orrery.local","media":"//media/",)"
      R"("addresses":"//addresses/","_dbs":"//dbs/","writableLocations":{0},)"
      R"("readableLocations":{0},"enableMultipleWriteLocations":false,)"
      R"("continuousBackupEnabled":false,"enableNRegionSynchronousCommit":false,)"
      R"("userReplicationPolicy":{{"asyncReplication":false,"minReplicaSetSize":1,)"
      R"("maxReplicasetSize":4}},"userConsistencyPolicy":{{"defaultConsistencyLevel":"Session"}},)"
      R"("systemReplicationPolicy":{{"minReplicaSetSize":1,"maxReplicasetSize":4}},)"
      R"("readPolicy":{{"primaryReadCoefficient":1,"secondaryReadCoefficient":1}},)"
      R"("queryEngineConfiguration":{1}}})",
      location, configuration);
  context.charge = kMetadataRead;
  auto response = reply(context, 200, std::move(body));
  response.add(headers::kLife.text, services.catalog.life());
  response.add(headers::kMaxMediaStorageUsageMb.text, "2048");
  response.add(headers::kMediaStorageUsageMb.text, "0");
  response.add(headers::kAccountConsumedMb.text, "0");
  response.add(headers::kAccountReservedMb.text, "0");
  response.add(headers::kAccountProvisionedMb.text, "0");
  return response;
}

}  // namespace orrery::api
