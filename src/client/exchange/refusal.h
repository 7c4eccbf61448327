// From answers and their absence to CosmosException.
#pragma once

#include <string>
#include <string_view>

#include "client/transport/transport.h"
#include "orrery/exception.h"
#include "orrery/response.h"

namespace orrery::client {

/// The number in x-ms-substatus; 0 when there is none.
int sub_status_of(const Reply& reply);

/// The backoff that the server asks for in x-ms-retry-after-ms.
std::optional<std::chrono::milliseconds> retry_after_of(const Reply& reply);

/// The metadata of an answer. Takes the headers of `reply`.
ResponseInfo info_of(Reply& reply, Diagnostics diagnostics);

/// The server's words in an error body, without envelope and activity id; in words of ours when
/// there are none.
std::string message_of(const Reply& reply);

/// `advice`, if there is any, follows the server's words.
CosmosException refusal_of(const Reply& reply, const Diagnostics& diagnostics,
                           std::string_view advice = {});

CosmosException failure_of(Failure failure, const std::string& words,
                           const Diagnostics& diagnostics = {});

}  // namespace orrery::client
