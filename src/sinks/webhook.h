// WebhookSink: posts batches to a URL.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "client/transport/transport.h"
#include "sinks/sink.h"

namespace orrery::sinks {

struct WebhookOptions {
  std::string endpoint;        ///< "https://hooks.example:8443"
  std::string path;            ///< "/changes?tenant=7"
  client::HeaderList headers;  ///< beyond our own
  std::chrono::milliseconds batch_time{0};
  std::string certificate_file;
  bool verify_certificate = true;

  /// BadRequest when it is no http or https URL.
  Result<> set_url(std::string_view url);
};

/// Judges the answer to a batch of `count` documents: 2xx is done, or as its body replies; 408,
/// 429, 502, 503 and 504 are later; another 4xx is a refusal, all else a failure.
Delivery judge_answer(const client::Reply& reply, std::size_t count, UnixSeconds now);

class WebhookSink final : public BatchSink {
 public:
  explicit WebhookSink(WebhookOptions options) : options_(std::move(options)) {}
  Delivery deliver(processor::ObserverContext& context, Changes changes) override;

 private:
  std::unique_ptr<client::Transport> take_idle();
  void put_back(std::unique_ptr<client::Transport> transport);

  WebhookOptions options_;
  SystemClock clock_;
  std::mutex mutex_;  // Guards what follows.
  // One connection each; with lanes there are as many as batches at once.
  std::vector<std::unique_ptr<client::Transport>> idle_;
};

}  // namespace orrery::sinks
