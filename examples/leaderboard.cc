// Keeps a leaderboard from the scores of games, and writes it as one document.
//
//   leaderboard DATABASE SCORES BOARDS [--top=10] [--once]
//
// A score is a document like {"id": "game-17", "player": "ada", "score": 4200}. The board is the
// document "leaderboard" in BOARDS, whose partition key is /id:
//
//   {"id": "leaderboard", "top": [{"player": "ada", "score": 4200}, …]}
#include <mutex>

#include <nlohmann/json.hpp>

#include "example.h"

namespace client = orrery::client;
namespace processor = orrery::processor;
using Json = nlohmann::json;

namespace {

/// The best score of each player. Changes come at least once, that is, sometimes twice: a best
/// score does not mind, while a sum or a count would be wrong then.
class Board {
 public:
  Board(client::Container boards, std::size_t top_max)
      : boards_(std::move(boards)), top_max_(top_max) {}

  /// Called for several ranges at the same time.
  processor::Outcome take(const processor::Documents& changes) {
    const std::scoped_lock lock(mutex_);
    for (const std::string_view text : changes) {
      const Json score = Json::parse(text, nullptr, /*allow_exceptions=*/false);
      const auto player = score.find("player");
      const auto points = score.find("score");
      // One document that is no score must not stop the game.
      if (player == score.end() || !player->is_string()) continue;
      if (points == score.end() || !points->is_number()) continue;
      const auto [best, first] = best_.try_emplace(player->get<std::string>(), *points);
      if (!first && *points > best->second) best->second = *points;
    }
    publish();
    return processor::Outcome::done();
  }

 private:
  /// Writes the board if it has changed. What this throws is an observer error: the batch comes
  /// again, and with it another attempt to write.
  void publish() {
    std::vector<std::pair<std::string, Json>> ranked(best_.begin(), best_.end());
    std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    if (ranked.size() > top_max_) ranked.resize(top_max_);
    Json board = {{"id", "leaderboard"}, {"top", Json::array()}};
    for (const auto& [player, score] : ranked) {
      board["top"].push_back({{"player", player}, {"score", score}});
    }
    if (board == published_) return;
    boards_.upsert_item(board);
    published_ = std::move(board);
  }

  client::Container boards_;
  std::size_t top_max_;
  std::mutex mutex_;  // Guards what follows.
  std::map<std::string, Json> best_;
  Json published_;
};

}  // namespace

int main(int argc, char** argv) {
  return example::guarded([&] {
    const example::Arguments arguments(argc, argv);
    if (arguments.words.size() < 3) {
      std::cerr << "usage: leaderboard DATABASE SCORES BOARDS [--top=10] [--once]\n";
      return 2;
    }
    const auto database = example::connect().database(arguments.words[0]);
    const auto scores = database.container(arguments.words[1]);
    Board board(example::data_container(database, arguments.words[2], "/id"),
                std::stoul(arguments.value("top", "10")));

    // The scores live in memory, and so do the positions: after a restart both are gone together,
    // and the board is built anew from the first score on. Positions that outlive what was made of
    // the changes before them would be a gap. For a feed that takes long to read, keep both in
    // containers.
    const auto leases = processor::memory_lease_store();
    processor::ChangeFeedProcessorHost host("leaderboard", scores, leases,
                                            {.start_from_beginning = true});
    host.set_health_monitor(example::report_trouble);
    const auto take = [&](processor::ObserverContext&, const processor::Documents& changes) {
      return board.take(changes);
    };
    const processor::LeaseGroup group(scores, leases);
    processor::run_until_signal(host, take, example::when_done(group, arguments.has("once")));
    return 0;
  });
}
