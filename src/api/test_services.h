// For tests: what handlers stand on, over a store of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/thread_pool.hpp>

#include "api/document_request.h"
#include "api/feed_push.h"
#include "api/services.h"
#include "feed/live_map.h"
#include "feed/reader.h"
#include "maintenance/range_change.h"
#include "partition/test_environment.h"

namespace orrery::api {

/// A catalog with the database `d`, and services without what works in the background. Whoever
/// holds a container lets go of it first.
class TestServices {
 public:
  TestServices() {
    catalog_ = std::move(catalog::Catalog::open(home.environment(), make_rules).value());
    home.committer().start();
    database_ = catalog_->create_database("d", {}).value();
    range_changes_ = std::make_unique<maintenance::RangeChanges>(home.environment(), *catalog_);
    services_.reset(new Services{*catalog_,
                                 *range_changes_,
                                 home.store(),
                                 blocking_,
                                 scans_,
                                 blocking_,
                                 home.clock(),
                                 page_ahead_,
                                 reader_,
                                 push_,
                                 "",
                                 "",
                                 {},
                                 {}});
  }
  ~TestServices() {
    range_changes_->stop();
    home.committer().stop();
    scans_.join();
    blocking_.join();
    services_.reset();
    catalog_.reset();
  }

  /// `members` follow the id in its definition, each with a comma before it.
  catalog::ContainerPtr create_container(const std::string& id, const std::string& members,
                                         std::int64_t request_units = 400) {
    auto definition = ContainerDefinition::create(
        Json::parse(R"({"id":")" + id + "\"" + members + "}"), "2020-07-15");
    catalog::Throughput throughput;
    throughput.manual = request_units;
    return catalog_->create_container(database_->rid, std::move(*definition), throughput).value();
  }

  Services& operator*() { return *services_; }
  Services* operator->() { return services_.get(); }
  boost::asio::thread_pool& blocking() { return blocking_; }

  partition::TestEnvironment home;

 private:
  boost::asio::thread_pool blocking_{1};
  BackgroundPool scans_{1, [] { return false; }};
  feed::LiveMaps live_maps_{home.store(), blocking_};
  feed::Reader reader_{home.store(), live_maps_};
  FeedPush push_{blocking_};
  PageAhead page_ahead_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<maintenance::RangeChanges> range_changes_;
  catalog::DatabasePtr database_;
  std::unique_ptr<Services> services_;
};

}  // namespace orrery::api
