// An ObserverContext without a host, for tests of observers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/processor.h"

namespace orrery::sinks {

class TestObserverContext final : public processor::ObserverContext {
 public:
  TestObserverContext(std::uint64_t epoch, std::string from, std::string to)
      : epoch_(epoch), from_(std::move(from)), to_(std::move(to)) {}

  const std::string& lease_token() const override { return lease_; }
  const std::string& partition_key_range_id() const override { return lease_; }
  std::uint64_t epoch() const override { return epoch_; }
  const std::string& from() const override { return from_; }
  const std::string& to() const override { return to_; }
  std::stop_token stop() const override { return stop_.get_token(); }
  void checkpoint() override {
    if (on_checkpoint) on_checkpoint();
    checkpoints.push_back(to_);
  }

  void request_stop() { stop_.request_stop(); }

  std::function<void()> on_checkpoint;
  std::vector<std::string> checkpoints;

 private:
  std::string lease_ = "7";
  std::uint64_t epoch_;
  std::string from_, to_;
  std::stop_source stop_;
};

/// A page of these documents, which must outlive it.
inline processor::Documents page_of(std::vector<std::string_view> documents) {
  return processor::Documents({}, nullptr, std::move(documents), {});
}

}  // namespace orrery::sinks
