// Shared by the load drivers: signed requests, sockets, and heads of responses.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

using SteadyClock = std::chrono::steady_clock;

/// Says what is wrong and ends the program: a measurement that goes on would measure something
/// else.
[[noreturn]] void fail(const std::string& what);

/// Which server and container.
struct Target {
  std::string host = "127.0.0.1";
  int port = 8081;
  std::string database = "bench";
  std::string container = "docs";

  std::string container_link() const { return "dbs/" + database + "/colls/" + container; }
  /// --host, --port, --database and --container of a command line; false: another option.
  bool take(std::string_view name, const char* value);
};

/// Signs requests with the date at which it was made: good for the fifteen minutes that the service
/// allows, longer than any run.
class Signer {
 public:
  explicit Signer(const std::string& base64_key);
  const std::string& date() const { return date_; }
  std::string authorization(std::string_view lower_verb, std::string_view type,
                            std::string_view link) const;

 private:
  std::vector<unsigned char> key_;
  std::string date_;
  std::string lower_date_;
};

/// The emulator's well-known key: no secret.
extern const std::string kKey;

/// The headers that an SDK in gateway mode sends with every request; more may follow, then an empty
/// line.
std::string head(const Target& target, const Signer& signer, std::string_view verb,
                 std::string_view path, const std::string& authorization);

struct Head {
  int status = 0;
  std::size_t size = 0;  ///< of the head, with its empty line
  std::size_t body = 0;
  bool chunked = false;
  std::uint64_t item_count = 0;
  std::string_view continuation;
  std::string_view etag;
  bool closes = false;
};

/// Returns false while the head is not complete. The views point into `bytes`.
bool parse_head(std::string_view bytes, Head& out);

int connect_to(const Target& target);

/// A request is much smaller than a socket's send buffer, and the last one has been answered: a
/// blocking send does not wait.
void send_all(int fd, std::string_view bytes);

/// One response that has a length, read into `buffer`, which grows as needed; returns its size. The
/// views of `head` point into the buffer.
std::size_t receive_response(int fd, std::vector<char>& buffer, Head& head);

/// Upserts a document and returns when it is acknowledged.
void upsert(int fd, const Target& target, const Signer& signer, const std::string& partition_key,
            std::string_view body, std::vector<char>& buffer);

/// Of numbers that are sorted; 0 when there are none.
double quantile(const std::vector<double>& sorted, double q);

}  // namespace bench
