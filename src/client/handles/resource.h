// Shared by the handles of the client: names in links, bodies of answers, lists.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "client/exchange/call_time.h"
#include "client/exchange/pipeline.h"
#include "json/value.h"
#include "orrery/client.h"

namespace orrery::client {

/// Gives the options of a call, of whatever kind, those of a request.
template <typename Options>
void set_request_options(Options& options, RequestOptions request) {
  options.session_token = std::move(request.session_token);
  options.consistency = request.consistency;
  options.timeout = request.timeout;
  options.stop = std::move(request.stop);
  options.headers = std::move(request.headers);
}

/// Nothing is sent. Throws CosmosException (Argument).
[[noreturn]] void refuse_argument(const std::string& message);

/// `id` as a segment of a link. Throws CosmosException (Argument) when it is empty or has a '/':
/// the link would then be that of something else.
std::string_view segment(std::string_view id, std::string_view what);

/// Whether the container divides its documents by a key. Of one that does not, all have the same.
bool has_key(const RoutingMap& routing);
/// A key as it goes over the wire. Where documents lack the property, it depends on the container
/// what they have instead.
std::string key_json(const RoutingMap& routing, const PartitionKey& key);
/// Which part of the container has this key.
FeedRange slice_of(const RoutingMap& routing, const PartitionKey& key);

/// Whether key_json() depends on the container.
bool depends_on_container(const PartitionKey& key);
/// key_json() for a container of which perhaps nothing is known yet.
std::string key_header(Pipeline& pipeline, const std::string& container, const PartitionKey& key,
                       const RequestOptions& options);

/// The key that `document` has in the container of `routing`. Throws CosmosException (Argument)
/// when it is no JSON object.
PartitionKey key_in(const RoutingMap& routing, std::string_view document);

/// `text` as a JSON string.
std::string json_string(std::string_view text);

/// The parsed body of an answer. Refers to it. Throws CosmosException when it is no JSON object.
json::Value body_of(const Answer& answer);

/// The JSON text of a member; empty when there is none.
std::string text_at(const json::Value& object, std::string_view member);

/// `value` with what else the answer told.
template <typename T>
Response<T> respond(Answer& answer, T value) {
  Response<T> response;
  static_cast<ResponseInfo&>(response) = std::move(static_cast<ResponseInfo&>(answer));
  response.value = std::move(value);
  return response;
}

DatabaseProperties database_properties(const json::Value& body);

/// How often somebody may be quicker, at creating or at deleting, before it is no coincidence.
inline constexpr int kCreateAttemptsMax = 4;

/// Reads what is to be there, and creates it when it is not; also when somebody else does so, or an
/// answer is lost, in between.
template <typename Read, typename Create>
auto create_if_missing(const CreateOptions& options, Read read, Create create) {
  const CallTime time(options);
  CreateOptions now = options;
  const auto next = [&]() -> const CreateOptions& {
    set_request_options(now, time.for_next_request());
    return now;
  };
  for (int attempt = 1;; ++attempt) {
    try {
      return read(next());
    } catch (const CosmosException& failure) {
      if (!failure.is_not_found()) throw;
    }
    try {
      return create(next());
    } catch (const CosmosException& failure) {
      const bool may_be_there = failure.is_conflict() || failure.failure() == Failure::Network;
      if (!may_be_there || attempt == kCreateAttemptsMax) throw;
    }
  }
}

/// The body of a query, as it goes over the wire.
std::string query_body(const Query& query);

/// Makes a call that lists one that queries.
void turn_into_query(Call& call, const Query& query);

/// One page of a list of resources that are not documents: `call` with its page size and
/// continuation. `each` is called with every element of the array `member`.
Answer list_page(Pipeline& pipeline, Call call, const ListOptions& options,
                 const std::string& continuation, std::string_view member,
                 const std::function<void(const json::Value&)>& each);

/// All of such a list. `read` makes a T of an element.
template <typename T>
Pages<Page<T>> list_pages(std::shared_ptr<Pipeline> pipeline, Call call, const ListOptions& options,
                          std::string member, T (*read)(const json::Value&)) {
  auto read_page = [pipeline = std::move(pipeline), call = std::move(call), options,
                    member = std::move(member), read](const std::string& continuation) {
    Page<T> page;
    Answer answer =
        list_page(*pipeline, call, options, continuation, member,
                  [&](const json::Value& element) { page.items.push_back(read(element)); });
    page.continuation = answer.header("x-ms-continuation");
    static_cast<ResponseInfo&>(page) = std::move(static_cast<ResponseInfo&>(answer));
    return page;
  };
  return {std::move(read_page), options.continuation};
}

}  // namespace orrery::client
