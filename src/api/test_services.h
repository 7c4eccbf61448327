// For tests: what handlers stand on, over a store of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/thread_pool.hpp>

#include "api/documents/document_request.h"
#include "api/feed/feed_push.h"
#include "api/services.h"
#include "catalog/test_catalog.h"
#include "feed/live_map.h"
#include "feed/reader.h"
#include "maintenance/range_change.h"

namespace orrery::api {

/// Handlers' services without what works in the background, over a catalog with the database `d`.
/// Tests release the containers that they hold before it ends.
class TestServices {
 public:
  TestServices() {
    services_.reset(new Services{*catalog_,
                                 range_changes_,
                                 {.store = home.store(), .clock = home.clock()},
                                 blocking_,
                                 scans_,
                                 blocking_,
                                 home.clock(),
                                 prefetcher_,
                                 reader_,
                                 push_,
                                 "",
                                 {},
                                 {},
                                 {}});
  }
  ~TestServices() {
    range_changes_.stop();
    catalog_.stop();
    scans_.join();
    blocking_.join();
    services_.reset();
  }

  catalog::ContainerPtr create_container(const std::string& id, const std::string& members,
                                         std::int64_t request_units = 400) {
    return catalog_.create_container(id, members, request_units);
  }

  Services& operator*() { return *services_; }
  Services* operator->() { return services_.get(); }
  boost::asio::thread_pool& blocking() { return blocking_; }

 private:
  catalog::TestCatalog catalog_{make_rules};

 public:
  partition::TestEnvironment& home = catalog_.home;

 private:
  maintenance::RangeChanges range_changes_{home.environment(), *catalog_};
  boost::asio::thread_pool blocking_{1};
  BackgroundPool scans_{1, [] { return false; }};
  feed::LiveMaps live_maps_{home.store(), blocking_};
  feed::Reader reader_{home.store(), live_maps_};
  feed::Push push_{blocking_};
  feed::Prefetcher prefetcher_;
  std::unique_ptr<Services> services_;
};

}  // namespace orrery::api
