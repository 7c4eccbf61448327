// Regions: which endpoints an account has, and which of them to use now.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/exchange/endpoint.h"
#include "orrery/client.h"

namespace orrery::client {

/// The account as `GET /` shows it. BadRequest when the body is something else.
Result<AccountProperties> parse_account(std::string_view body);

/// Thread-safe. Time is handed in.
class Regions {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// How long an endpoint that could not be reached comes after all others.
  static constexpr std::chrono::minutes kAvoided{5};

  /// An endpoint and what is known of its health. Lives as long as its Regions.
  class Known {
   public:
    explicit Known(EndpointPtr where) : endpoint(std::move(where)) {}
    const EndpointPtr endpoint;

   private:
    friend class Regions;
    std::atomic<bool> answered_{false};
    std::atomic<bool> failed_{false};
    std::atomic<TimePoint::rep> failed_at_{0};
  };

  /// Until update(), everything goes to `given`.
  Regions(EndpointPtr given, std::vector<std::string> preferred);

  /// Makes an account's regions known. Its endpoints are used before the one that was given, which
  /// stays the last resort: behind port forwarding it may be the only one that can be reached.
  void update(const AccountProperties& account);
  bool known() const { return known_.load(std::memory_order_acquire); }
  std::optional<ConsistencyLevel> consistency() const;

  /// Where to send next: the best endpoint that is not in `tried`; when all are, the best of all.
  Known& choose(bool writes, std::span<Known* const> tried, TimePoint now);
  /// Whether choose() would name one that is not in `tried`.
  bool has_other(bool writes, std::span<Known* const> tried) const;
  /// Whether writes go there, as far as is known.
  bool is_write_region(const Known& known) const;

  /// The endpoint that was given first, then all that are known.
  std::vector<EndpointPtr> all() const;

  void answered(Known& known);
  void unreachable(Known& known, TimePoint now);

 private:
  struct Picture {
    std::vector<Known*> reads;
    std::vector<Known*> writes;
    std::optional<ConsistencyLevel> consistency;
  };
  using PicturePtr = std::shared_ptr<const Picture>;

  PicturePtr picture() const;
  Known* find_or_add(const EndpointPtr& endpoint);
  std::vector<Known*> in_order(const std::vector<Region>& regions);
  static bool is_avoided(const Known& known, TimePoint now);

  const std::vector<std::string> preferred_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Known>> endpoints_;  // The first is the one that was given.
  PicturePtr picture_;                             // Shared by those who are choosing.
  std::atomic<bool> known_{false};
};

}  // namespace orrery::client
