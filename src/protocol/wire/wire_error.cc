#include "protocol/wire/wire_error.h"

#include "base/assert.h"

namespace orrery {
namespace {

struct Row {
  ErrorCode error;
  WireError wire;
};

constexpr Row kTable[] = {
    {ErrorCode::BadRequest, {400, 0, "BadRequest"}},
    {ErrorCode::NumberNotInJson, {400, 4001, "4001"}},
    {ErrorCode::PartitionKeyMismatch, {400, 1001, "BadRequest"}},
    {ErrorCode::ContainerRidMismatch, {400, 1024, "BadRequest"}},
    {ErrorCode::Unauthorized, {401, 0, "Unauthorized"}},
    {ErrorCode::Forbidden, {403, 0, "Forbidden"}},
    {ErrorCode::SharedThroughputFull, {403, 1010, "Forbidden"}},
    {ErrorCode::NotFound, {404, 0, "NotFound"}},
    {ErrorCode::OwnerNotFound, {404, 1003, "NotFound"}},
    {ErrorCode::SessionNotAvailable, {404, 1002, "NotFound"}},
    {ErrorCode::MethodNotAllowed, {405, 0, "MethodNotAllowed"}},
    {ErrorCode::RequestTimeout, {408, 0, "RequestTimeout"}},
    {ErrorCode::Conflict, {409, 0, "Conflict"}},
    {ErrorCode::NameCacheStale, {410, 1000, "Gone"}},
    {ErrorCode::RangeGone, {410, 1002, "Gone"}},
    {ErrorCode::PreconditionFailed, {412, 0, "PreconditionFailed"}},
    {ErrorCode::RequestTooLarge, {413, 0, "RequestEntityTooLarge"}},
    {ErrorCode::ResponseTooLarge, {413, 3402, "RequestEntityTooLarge"}},
    {ErrorCode::TooManyRequests, {429, 3092, "TooManyRequests"}},
    {ErrorCode::HeadTooLarge, {431, 0, "RequestHeaderFieldsTooLarge"}},
    {ErrorCode::Internal, {500, 0, "InternalServerError"}},
    {ErrorCode::NotImplemented, {501, 0, "NotImplemented"}},
    {ErrorCode::Unavailable, {503, 0, "ServiceUnavailable"}},
    {ErrorCode::OutcomeUnknown, {503, 0, "ServiceUnavailable"}},
    {ErrorCode::ClientGone, {503, 0, "ServiceUnavailable"}},
    {ErrorCode::NotInMemory, {503, 0, "ServiceUnavailable"}},
    {ErrorCode::ReadLimitReached, {503, 0, "ServiceUnavailable"}},
};

}  // namespace

WireError wire_error(ErrorCode code) {
  for (const Row& row : kTable) {
    if (row.error == code) return row.wire;
  }
  ORRERY_ASSERT(!"every ErrorCode has a row in the table");
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 207:
      return "Multi-Status";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Request Entity Too Large";
    case 424:
      return "Failed Dependency";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 449:
      return "Retry With";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    default:
      return "Unknown";
  }
}

}  // namespace orrery
