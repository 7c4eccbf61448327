// A pipeline for unit tests: it sends nothing, remembers what it was asked for, and answers as the
// test says.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/exchange/pipeline.h"

namespace orrery::client::test {

/// `name` of a call's headers, in lower case; nothing when it has none.
inline std::optional<std::string> header_of(const Call& call, std::string_view name) {
  for (const auto& [each, value] : call.headers) {
    if (each == name) return value;
  }
  return std::nullopt;
}

inline Answer answer_of(int status, std::string body, HeaderList headers = {}) {
  Answer answer;
  answer.status = status;
  answer.body = std::move(body);
  answer.headers = std::move(headers);
  answer.request_charge = 1;
  return answer;
}

inline CosmosException refusal(int status, int sub_status = 0) {
  CosmosException::Details details;
  details.status = status;
  details.sub_status = sub_status;
  details.request_charge = 1;
  return {"refused", std::move(details)};
}

/// Ranges "0", "1", … with these boundaries between them.
inline RoutingMapPtr routing_of(const std::vector<std::string>& boundaries,
                                PartitionKeyDefinition definition = {{{"pk"}}, KeyKind::Hash, 2},
                                int first_id = 0, std::string rid = "KxEAAJE-AgA=") {
  std::vector<PartitionKeyRange> ranges;
  std::string min;
  for (std::size_t i = 0; i <= boundaries.size(); ++i) {
    const std::string max = i < boundaries.size() ? boundaries[i] : "FF";
    ranges.push_back({std::to_string(first_id + static_cast<int>(i)), {min, max}, {}});
    min = max;
  }
  return std::make_shared<const RoutingMap>(std::move(rid), std::move(definition),
                                            std::move(ranges), "\"1\"");
}

class TestPipeline : public Pipeline {
 public:
  using Respond = std::function<Answer(const Call&)>;

  Answer send(const Call& call, const RequestOptions& request_options) override {
    {
      const std::lock_guard lock(mutex_);
      calls.push_back(call);
      call_options.push_back(request_options);
    }
    return respond(call);
  }
  void send_async(Call call, RequestOptions request_options, Done done) override {
    try {
      done(send(call, request_options), nullptr);
    } catch (...) {
      done({}, std::current_exception());
    }
  }
  RoutingMapPtr routing(const std::string&, const RequestOptions&) override {
    const std::lock_guard lock(mutex_);
    ++routing_count;
    return map;
  }
  void forget_routing(const std::string&, const RoutingMapPtr& known) override {
    const std::lock_guard lock(mutex_);
    // Many may say so of the same map; it is fetched anew once.
    if ((known == nullptr || known == map) && next_map) map = std::exchange(next_map, nullptr);
  }
  const std::string& endpoint() const override { return endpoint_; }
  const ClientOptions& options() const override { return client_options; }

  const Call& last_call() const { return calls.back(); }

  Respond respond = [](const Call&) { return answer_of(200, "{}"); };
  std::vector<Call> calls;
  std::vector<RequestOptions> call_options;
  int routing_count = 0;
  RoutingMapPtr map = routing_of({});
  RoutingMapPtr next_map;  ///< what is known once the present one is forgotten
  ClientOptions client_options;

 private:
  std::mutex mutex_;
  std::string endpoint_ = "http://localhost:8081/";
};

}  // namespace orrery::client::test
