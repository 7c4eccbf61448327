// One host of the chaos run: takes part until SIGTERM, and writes down what its observers see.
//
//   chaos_host --endpoint URL --key KEY --database D --monitored C --leases C --name N
//              --record FILE [--renew-ms N] [--acquire-ms N] [--expiration-ms N] [--page-size N]
//              [--work-ms N]
//
// FILE gets one line of JSON for each call of an observer, in one write, before the call returns:
// what is not in it was not processed. Lines are
//
//   {"what":"open","run":R,"host":N,"lease":T,"epoch":E,"from":P,"begin":T,"end":T}
//   {"what":"batch", …, "range":I,"to":P,"changes":[[key,id,seq,lsn],…]}
//   {"what":"close", …, "reason":N}
//
// with one run for each observer, and times in seconds of the machine's monotonic clock, which is
// that of the driver, too. "ready" on standard output says that the host takes part.
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "orrery/json.h"
#include "orrery/processor.h"

namespace {

using namespace orrery;
using nlohmann::json;

double monotonic_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// A log of events, line by line. Thread-safe. A line is one write to a file that only grows, so
/// that a process that is killed leaves whole lines.
class Record {
 public:
  explicit Record(const std::string& path)
      : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
    if (file_ < 0) throw std::runtime_error("cannot write to " + path);
  }
  ~Record() { ::close(file_); }
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  void add(const json& line) {
    const std::string text = line.dump() + "\n";
    if (::write(file_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      std::perror("chaos_host: the record");
      std::abort();  // A run without its record shows nothing.
    }
  }

 private:
  int file_;
};

class RecordingObserver final : public processor::ChangeFeedObserver {
 public:
  RecordingObserver(Record& record, std::string host, std::chrono::milliseconds work)
      : record_(record), host_(std::move(host)), work_(work) {
    static std::atomic<int> runs{0};
    run_ = host_ + "/" + std::to_string(::getpid()) + "/" + std::to_string(++runs);
  }

  void open(processor::ObserverContext& context) override { note("open", context); }
  void process_changes(processor::ObserverContext& context,
                       const processor::Documents& changes) override {
    const double begin = monotonic_seconds();
    work(context.stop());
    json seen = json::array();
    for (const json& change : client::to_json(changes)) {
      seen.push_back({change["pk"], change["id"], change["seq"], change["_lsn"]});
    }
    note("batch", context,
         {{"range", context.partition_key_range_id()},
          {"to", context.to()},
          {"changes", std::move(seen)}},
         begin);
  }
  void close(processor::ObserverContext& context, processor::CloseReason reason) override {
    note("close", context, {{"reason", static_cast<int>(reason)}});
  }

 private:
  /// Takes its time, as an observer does, so that signals find some in the middle of a batch.
  void work(const std::stop_token& stop) const {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, stop, work_, [] { return false; });
  }

  void note(const char* what, processor::ObserverContext& context, json more = json::object(),
            double begin = monotonic_seconds()) {
    more.update({{"what", what},
                 {"run", run_},
                 {"host", host_},
                 {"lease", context.lease_token()},
                 {"epoch", context.epoch()},
                 {"from", context.from()},
                 {"begin", begin},
                 {"end", monotonic_seconds()}});
    record_.add(more);
  }

  Record& record_;
  std::string host_;
  std::chrono::milliseconds work_;
  std::string run_;
};

/// The words of the command line: "--name value".
class Arguments {
 public:
  Arguments(int argc, char** argv) {
    for (int i = 1; i + 1 < argc; i += 2) words_[argv[i]] = argv[i + 1];
  }
  std::string text(const std::string& name) const {
    const auto found = words_.find("--" + name);
    if (found == words_.end()) throw std::runtime_error("--" + name + " is needed");
    return found->second;
  }
  int number(const std::string& name, int otherwise) const {
    const auto found = words_.find("--" + name);
    return found == words_.end() ? otherwise : std::atoi(found->second.c_str());
  }

 private:
  std::map<std::string, std::string> words_;
};

void take_part(const Arguments& arguments, const sigset_t& ending) {
  const client::CosmosClient account(arguments.text("endpoint"), arguments.text("key"));
  const client::Database database = account.database(arguments.text("database"));
  const std::string name = arguments.text("name");

  processor::MonitoredFeedOptions feed_options;
  feed_options.start_from_beginning = true;
  feed_options.max_item_count = arguments.number("page-size", 20);
  processor::ChangeFeedHostOptions options;
  options.lease_renew_interval = std::chrono::milliseconds(arguments.number("renew-ms", 300));
  options.lease_acquire_interval = std::chrono::milliseconds(arguments.number("acquire-ms", 250));
  options.lease_expiration_interval =
      std::chrono::milliseconds(arguments.number("expiration-ms", 1500));
  options.feed_poll_delay = std::chrono::milliseconds(100);
  options.long_poll_wait = std::chrono::seconds(5);
  options.shutdown_deadline = std::chrono::seconds(10);

  Record record(arguments.text("record"));
  const std::chrono::milliseconds work(arguments.number("work-ms", 3));
  processor::ChangeFeedProcessorHost host(name, database.container(arguments.text("monitored")),
                                          database.container(arguments.text("leases")),
                                          feed_options, options);
  host.set_health_monitor([](const processor::HealthEvent& event) {
    std::fprintf(stderr, "%.3f %d %s of lease %s: %s\n", monotonic_seconds(),
                 static_cast<int>(event.severity), event.operation.c_str(),
                 event.lease_token.c_str(), event.message.c_str());
  });
  host.register_observer([&] { return std::make_unique<RecordingObserver>(record, name, work); });
  std::cout << "ready" << std::endl;
  int signal = 0;
  ::sigwait(&ending, &signal);
  host.unregister_observers();
}

}  // namespace

int main(int argc, char** argv) {
  // Before there are threads, so that only sigwait() gets it.
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  try {
    take_part(Arguments(argc, argv), ending);
    return 0;
  } catch (const std::exception& failure) {
    std::cerr << "chaos_host: " << failure.what() << std::endl;
    return 1;
  }
}
