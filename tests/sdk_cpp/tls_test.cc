// Over https: whom the client trusts, what it says of those whom it does not, and that everything
// else is as it is over http. Both ways of sending: calls that block, and long polls.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "orrery/json.h"
#include "test_account.h"

namespace orrery::test {
namespace {

using client::ChangeFeedOptions;
using client::ChangeFeedStart;
using client::ClientOptions;
using client::Container;
using client::ContainerProperties;
using client::CosmosClient;
using client::CosmosException;
using client::Failure;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

constexpr std::size_t kLargeBytes = 1'500'000;

/// One server for each test, since most of them change its certificate.
class TlsTest : public ::testing::Test {
 protected:
  TlsTest() : server_({.arguments = {}, .keeps_data = true}) {}

  std::string certificate() const {
    return (server_.data_directory() / "tls-certificate.pem").string();
  }
  ClientOptions trusting() const {
    ClientOptions options;
    options.certificate_file = certificate();
    return options;
  }
  CosmosClient secure_client(const ClientOptions& options) const {
    return {server_.secure_endpoint(), server_.key(), options};
  }
  static Container make_stars(const CosmosClient& client) {
    client.create_database("sky");
    ContainerProperties properties;
    properties.id = "stars";
    properties.partition_key_paths = {"/pk"};
    client.database("sky").create_container(properties);
    return client.database("sky").container("stars");
  }
  /// The server has another certificate from now on.
  void change_certificate() {
    server_.stop();
    std::filesystem::remove(server_.data_directory() / "tls-certificate.pem");
    std::filesystem::remove(server_.data_directory() / "tls-key.pem");
    server_.start();
  }
  template <typename Call>
  static CosmosException thrown_by(Call call) {
    try {
      call();
    } catch (const CosmosException& failure) {
      return failure;
    }
    ADD_FAILURE() << "nothing was thrown";
    return {"", {}};
  }
  static std::string large_document(const std::string& id) {
    return R"({"id":")" + id + R"(","pk":"k","text":")" + std::string(kLargeBytes, 'x') + R"("})";
  }

  ServerProcess server_;
};

/// Everything goes over https; the account says so, too.
void expect_secure(const client::ResponseInfo& answer) {
  ASSERT_FALSE(answer.diagnostics.attempts.empty());
  for (const client::Attempt& attempt : answer.diagnostics.attempts) {
    EXPECT_THAT(attempt.endpoint, StartsWith("https://"));
  }
}

/// All that a client does, in both ways.
void use(const Container& stars, const std::string& document) {
  const auto created = stars.upsert_item(document, "k");
  expect_secure(created);
  EXPECT_TRUE(stars.read_item("large", "k").value == created.value);  // Too large to be shown.
  ChangeFeedOptions options;
  options.wait = 30s;
  auto feed = stars.change_feed(options);
  auto page = feed.next();
  ASSERT_EQ(page.size(), 1u);
  EXPECT_EQ(nlohmann::json::parse(page[0])["text"].get<std::string>().size(), kLargeBytes);
  // Nothing is left: this one is a long poll, which the next write ends.
  std::jthread writer([&] { stars.upsert_item(R"({"id":"small","pk":"k"})", "k"); });
  page = feed.next();
  ASSERT_EQ(page.size(), 1u);
  EXPECT_EQ(nlohmann::json::parse(page[0])["id"], "small");
  expect_secure(page);
}

TEST_F(TlsTest, CertificateThatWasNamedIsTrusted) {
  const auto client = secure_client(trusting());
  use(make_stars(client), large_document("large"));
  const auto account = client.read_account();
  expect_secure(account);
  EXPECT_EQ(account.value.readable_regions.front().endpoint, server_.secure_endpoint());
}

TEST_F(TlsTest, VerificationCanBeTurnedOff) {
  ClientOptions options;
  options.verify_certificate = false;
  use(make_stars(secure_client(options)), large_document("large"));
}

TEST_F(TlsTest, UnknownCertificateIsRefusedWithAdvice) {
  const auto client = secure_client({});
  const auto failure = thrown_by([&] { client.read_account(); });
  EXPECT_EQ(failure.failure(), Failure::Network);
  EXPECT_THAT(failure.what(),
              AllOf(StartsWith("no connection to https://127.0.0.1:"), HasSubstr("certificate"),
                    HasSubstr("certificate_file"), HasSubstr("/_explorer/emulator.pem"),
                    HasSubstr("verify_certificate")));
  EXPECT_THAT(failure.diagnostics(), HasSubstr("1 attempt")) << "it would not be better later";
  const auto stars = client.database("sky").container("stars");
  EXPECT_THAT(thrown_by([&] { stars.create_item("{}", "k"); }).what(), HasSubstr("certificate"));
  EXPECT_THAT(thrown_by([&] { stars.change_feed().next(); }).what(), HasSubstr("certificate"));
}

TEST_F(TlsTest, LongPollDoesNotTrustAServerThatTookThePlace) {
  // As it was before.
  const auto trusted = server_.data_directory().parent_path() / "trusted.pem";
  std::filesystem::copy_file(certificate(), trusted);
  ClientOptions options;
  options.certificate_file = trusted;
  const auto stars = make_stars(secure_client(options));
  ChangeFeedOptions feed_options;
  feed_options.start = ChangeFeedStart::now();
  feed_options.wait = 1s;
  auto feed = stars.change_feed(feed_options);
  EXPECT_TRUE(feed.next().waited);

  change_certificate();
  const auto failure = thrown_by([&] { feed.next(); });
  EXPECT_EQ(failure.failure(), Failure::Network);
  EXPECT_THAT(failure.what(), AllOf(HasSubstr("certificate_file"), HasSubstr("emulator.pem")));
}

TEST_F(TlsTest, FileOfCertificatesThatIsNoneIsNamed) {
  ClientOptions options;
  options.certificate_file = (server_.data_directory() / "missing.pem").string();
  EXPECT_THAT(thrown_by([&] { secure_client(options).read_account(); }).what(),
              AllOf(HasSubstr("missing.pem"), HasSubstr("certificate_file must name")));
  const auto garbage = server_.data_directory() / "garbage.pem";
  std::ofstream(garbage) << "no certificate";
  options.certificate_file = garbage;
  EXPECT_THAT(thrown_by([&] { secure_client(options).read_account(); }).what(),
              AllOf(HasSubstr("garbage.pem"), HasSubstr("certificate_file must name")));
}

TEST_F(TlsTest, ManyThreadsShareConnections) {
  const auto stars = make_stars(secure_client(trusting()));
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&stars, thread] {
      for (int round = 0; round < 25; ++round) {
        const std::string id = std::to_string(thread) + "-" + std::to_string(round);
        stars.create_item(R"({"id":")" + id + R"(","pk":"k"})", "k");
        ASSERT_EQ(stars.read_item(id, "k").status, 200);
      }
    });
  }
  threads.clear();
  std::size_t count = 0;
  stars.list_items().for_each([&](const auto& page) { count += page.size(); });
  EXPECT_EQ(count, 200u);
}

TEST_F(TlsTest, CrashInTheMiddleOfARequestIsOutlived) {
  ClientOptions options = trusting();
  options.retry.attempts_max = 100;
  options.retry.first_wait = 20ms;
  const auto stars = make_stars(secure_client(options));
  const std::string document = large_document("large");
  stars.upsert_item(document, "k");
  ChangeFeedOptions feed_options;
  feed_options.start = ChangeFeedStart::now();
  feed_options.wait = 1s;
  auto feed = stars.change_feed(feed_options);
  EXPECT_TRUE(feed.next().waited);

  // It takes no more than what fits into the buffers, and then it is gone: the writer must hear
  // of it, and not be ended by a signal.
  server_.pause();
  std::atomic<bool> is_writing = false;
  std::jthread writer([&] {
    is_writing = true;
    EXPECT_EQ(stars.upsert_item(document, "k").status, 200);
  });
  EXPECT_TRUE(wait_until([&] { return is_writing.load(); }));
  server_.kill();
  server_.start();
  writer.join();
  std::size_t seen = 0;
  EXPECT_TRUE(wait_until([&] {
    seen += feed.next().size();
    return seen > 0;
  }));
  EXPECT_GE(seen, 1u);
}

}  // namespace
}  // namespace orrery::test
