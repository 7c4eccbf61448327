// For tests: a request and its context, and containers without anything behind them.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/context.h"
#include "api/documents/document_request.h"
#include "base/header_name.h"
#include "catalog/resources.h"
#include "http/message.h"
#include "protocol/container/container_definition.h"

namespace orrery::api {

/// Owns what a request's views point at.
class TestRequest {
 public:
  explicit TestRequest(std::string_view method = "GET", std::string_view target = "/") {
    request_.method = keep(method);
    request_.target = keep(target);
  }
  TestRequest& header(HeaderName name, std::string_view value) {
    request_.add_header(keep(name.text), keep(value));
    return *this;
  }
  TestRequest& body(std::string_view text) {
    request_.body = keep(text);
    return *this;
  }
  http::Request& request() { return request_; }
  Context context() { return Context(request_, "activity"); }
  Context context(std::shared_ptr<const catalog::Container> container) {
    Context made(request_, "activity");
    made.target.container = std::move(container);
    return made;
  }

 private:
  std::string_view keep(std::string_view text) { return texts_.emplace_back(text); }

  std::deque<std::string> texts_;  // Its elements stay where they are.
  http::Request request_;
};

/// A container of `members` (JSON, without braces) with that many ranges and no partitions.
inline std::shared_ptr<const catalog::Container> test_container(const std::string& members,
                                                                std::uint32_t range_count = 1) {
  auto definition =
      ContainerDefinition::create(Json::parse(R"({"id":"c")" + members + "}"), "2020-07-15");
  auto made = std::make_shared<catalog::Container>();
  made->rid = Rid::container({0, 0, 0, 1}, {0x80, 0, 0, 1});
  made->rid_text = made->rid.text();
  made->database_id = "d";
  made->definition = std::move(definition.value());
  std::vector<catalog::Range> ranges;
  for (auto& epks : divide_evenly(made->definition.partition_key(), range_count)) {
    const RangeId id{static_cast<std::uint32_t>(ranges.size())};
    ranges.push_back({id, std::move(epks), {}, 1, 0, nullptr});
  }
  made->ranges = catalog::RangeMap(std::move(ranges), 1);
  made->rules = make_rules(made->definition);
  return made;
}

inline const std::string kHashKey =
    R"(,"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2})";
inline const std::string kMultiHashKey =
    R"(,"partitionKey":{"paths":["/a","/b"],"kind":"MultiHash","version":2})";

}  // namespace orrery::api
