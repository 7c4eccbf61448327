// Calls a URL for each change of a container: POST, with the document as the body.
//
//   call_webhook DATABASE CONTAINER URL [LEASES] [--attempts=20] [--once]
//
// What the receiver answers decides what becomes of a change:
//
//   2xx                          it is done
//   408, 429, 5xx, or nothing    it is sent again, later and later; after 20 times it is put aside
//   another 4xx                  it will never be accepted: it is put aside at once
//
// Put aside means: written to the container "dead-letters", with the reason, so that one bad
// document does not hold up all that come after it.
//
// A change may be sent twice, when this program dies between the call and the checkpoint. Receivers
// that mind compare the header Idempotency-Key with what they have seen.
#include <curl/curl.h>

#include <nlohmann/json.hpp>

#include "example.h"

namespace processor = orrery::processor;

namespace {

/// One for each thread: a connection of libcurl is kept open between calls, and not shared.
class Webhook {
 public:
  explicit Webhook(const std::string& url) : curl_(curl_easy_init(), curl_easy_cleanup) {
    curl_easy_setopt(curl_.get(), CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl_.get(), CURLOPT_TIMEOUT_MS, 10'000L);
    curl_easy_setopt(curl_.get(), CURLOPT_NOSIGNAL, 1L);
    const auto discard = +[](char*, size_t size, size_t count, void*) { return size * count; };
    curl_easy_setopt(curl_.get(), CURLOPT_WRITEFUNCTION, discard);
  }

  struct Answer {
    long status = 0;  ///< 0: none
    std::string words;
    bool accepted() const { return status >= 200 && status < 300; }
    bool worth_another_try() const {
      return status == 0 || status == 408 || status == 429 || status >= 500;
    }
  };

  Answer post(std::string_view document) {
    // The etag changes with every version of a document, and with nothing else.
    const auto parsed = nlohmann::json::parse(document);
    const std::string version =
        "Idempotency-Key: " + parsed.value("_rid", "") + "/" + parsed.value("_etag", "");
    curl_slist* headers = curl_slist_append(nullptr, "Content-Type: application/json");
    headers = curl_slist_append(headers, version.c_str());
    curl_easy_setopt(curl_.get(), CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl_.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(document.size()));
    curl_easy_setopt(curl_.get(), CURLOPT_POSTFIELDS, document.data());
    const CURLcode outcome = curl_easy_perform(curl_.get());
    curl_slist_free_all(headers);
    if (outcome != CURLE_OK) return {0, curl_easy_strerror(outcome)};
    Answer answer;
    curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &answer.status);
    answer.words = "the receiver answered " + std::to_string(answer.status);
    return answer;
  }

 private:
  std::unique_ptr<CURL, void (*)(CURL*)> curl_;
};

/// There is one for each lease, and its calls never overlap: so each may have a connection.
class Caller : public processor::ChangeFeedObserver {
 public:
  explicit Caller(const std::string& url) : webhook_(url) {}

  processor::Outcome process(processor::ObserverContext& context,
                             const processor::Documents& changes) override {
    for (std::size_t i = 0; i < changes.size(); ++i) {
      // The host stops, or another one has the lease by now. A position is written for whole
      // batches only, so this one comes again from its first document.
      if (context.stop().stop_requested()) return processor::Outcome::done_until(i);
      const Webhook::Answer answer = webhook_.post(changes[i]);
      if (answer.accepted()) continue;
      // What was accepted shall not be sent again. So first say how far we came; then the batch
      // begins with the one at fault, and the verdict is about that one alone.
      if (i > 0) return processor::Outcome::done_until(i);
      if (answer.worth_another_try()) {
        return processor::Outcome::retry(std::chrono::milliseconds(100), answer.words);
      }
      if (changes.size() == 1) return processor::Outcome::reject({0}, answer.words);
      // Rejecting says that all others are done. They are not: let the host cut the batch down.
      return processor::Outcome::retry(std::chrono::milliseconds(0), answer.words);
    }
    return processor::Outcome::done();
  }

 private:
  Webhook webhook_;
};

}  // namespace

int main(int argc, char** argv) {
  return example::guarded([&] {
    const example::Arguments arguments(argc, argv);
    if (arguments.words.size() < 3) {
      std::cerr << "usage: call_webhook DATABASE CONTAINER URL [LEASES] [--attempts=20] [--once]\n";
      return 2;
    }
    curl_global_init(CURL_GLOBAL_DEFAULT);
    const auto database = example::connect().database(arguments.words[0]);
    const auto monitored = database.container(arguments.words[1]);
    const std::string url = arguments.words[2];
    const auto leases = example::lease_container(
        database, arguments.words.size() > 3 ? arguments.words[3] : "leases");

    const processor::MonitoredFeedOptions feed_options{
        .max_item_count = 25,  // At the most so many are sent again after a crash.
        .start_from_beginning = true};
    processor::ChangeFeedHostOptions host_options;
    host_options.lease_prefix = "webhook.";
    // Waits are doubled from the first to the longest: 20 attempts outlast some minutes of
    // downtime.
    host_options.retry.max_attempts = std::stoi(arguments.value("attempts", "20"));
    host_options.retry.first_wait = std::chrono::milliseconds(100);
    host_options.retry.wait_max = std::chrono::seconds(30);
    host_options.dead_letter_container =
        example::data_container(database, "dead-letters", "/range");

    processor::ChangeFeedProcessorHost host("webhook", monitored, leases, feed_options,
                                            host_options);
    host.set_health_monitor(example::report_trouble);
    const processor::LeaseGroup group(monitored, processor::container_lease_store(leases),
                                      host_options.lease_prefix);
    processor::run_until_signal(
        host, [url] { return std::make_unique<Caller>(url); },
        example::when_done(group, arguments.has("once")));
    return 0;
  });
}
