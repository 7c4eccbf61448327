#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <CLI/CLI.hpp>

namespace orrery::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Nearest, FindsWhatWasMeant) {
  const std::vector<std::string> words = {"serve", "feed", "query", "process", "leases", "copy"};
  EXPECT_EQ(nearest("sevre", words), "serve");
  EXPECT_EQ(nearest("srve", words), "serve");
  EXPECT_EQ(nearest("proces", words), "process");
  EXPECT_EQ(nearest("xyz", words), std::nullopt);
  EXPECT_EQ(nearest("", words), std::nullopt);
  EXPECT_EQ(nearest("--durabilty", {"--data-dir", "--durability"}), "--durability");
}

class CommandLineTest : public testing::Test {
 protected:
  CommandLineTest() {
    app.name("orrery");
    use_readable_help(app);
    app.require_subcommand(1);
    app.set_version_flag("--version", "orrery 1.2.3");
    auto* serve = app.add_subcommand("serve", "Run the server");
    choose(serve->add_option("--durability", durability), {"strict", "relaxed"});
    serve->add_option("--threads", threads)->check(CLI::Range(0, 256))->capture_default_str();
    serve->add_option("--count", count);
    serve->callback([this] { exit_code = fails ? 1 : 0; });
    auto* leases = app.add_subcommand("leases", "Look at leases");
    leases->require_subcommand(1);
    leases->add_subcommand("status", "Who has which")
        ->add_option("container", container)
        ->required();
    app.add_subcommand("help", "Show how a command is used");
  }

  int run(std::vector<const char*> words) {
    words.insert(words.begin(), "orrery");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int status =
        run_command_line(app, static_cast<int>(words.size()), words.data(), exit_code);
    output = testing::internal::GetCapturedStdout();
    complaint = testing::internal::GetCapturedStderr();
    return status;
  }

  CLI::App app;
  int exit_code = 0;
  bool fails = false;
  std::string durability = "strict";
  int threads = 0;
  int count = 0;
  std::string container;
  std::string output;
  std::string complaint;
};

TEST_F(CommandLineTest, StatusesAreThoseOfTheCommandOrTwo) {
  EXPECT_EQ(run({"serve"}), 0);
  fails = true;
  EXPECT_EQ(run({"serve"}), 1);
  EXPECT_EQ(run({"serve", "--nonsense"}), 2);
}

TEST_F(CommandLineTest, HelpIsShownInEveryWayThatItIsAskedFor) {
  for (const auto& words :
       std::vector<std::vector<const char*>>{{}, {"help"}, {"--help"}, {"-h"}}) {
    EXPECT_EQ(run(words), 0);
    EXPECT_THAT(output, AllOf(HasSubstr("serve"), HasSubstr("leases"))) << complaint;
  }
  for (const auto& words :
       std::vector<std::vector<const char*>>{{"help", "serve"}, {"serve", "--help"}}) {
    EXPECT_EQ(run(words), 0);
    EXPECT_THAT(output, AllOf(HasSubstr("Usage: orrery serve"), HasSubstr("strict|relaxed"),
                              HasSubstr("--threads 0..256 [0]"), HasSubstr("--count NUMBER"),
                              Not(HasSubstr("ENUM"))));
  }
  EXPECT_EQ(run({"help", "leases", "status"}), 0);
  EXPECT_THAT(output, HasSubstr("Usage: orrery leases status"));
  EXPECT_EQ(run({"help", "sevre"}), 2);
  EXPECT_THAT(complaint, HasSubstr("did you mean 'serve'?"));
}

TEST_F(CommandLineTest, TheVersionIsShown) {
  EXPECT_EQ(run({"--version"}), 0);
  EXPECT_EQ(output, "orrery 1.2.3\n");
}

TEST_F(CommandLineTest, AWordThatIsNoCommandIsToldWhatIsNear) {
  EXPECT_EQ(run({"sevre"}), 2);
  EXPECT_EQ(complaint,
            "orrery: there is no command 'orrery sevre'; did you mean 'serve'?\n"
            "'orrery help' shows the commands\n");
  EXPECT_EQ(run({"leases", "stauts", "a/b"}), 2);
  EXPECT_THAT(complaint, HasSubstr("'orrery leases stauts'; did you mean 'status'?"));
  EXPECT_EQ(run({"leases"}), 2);
  EXPECT_THAT(complaint, HasSubstr("'orrery leases' needs to be told what to do: status"));
}

TEST_F(CommandLineTest, AnOptionThatIsNoneIsToldWhatIsNear) {
  EXPECT_EQ(run({"serve", "--durabilty=strict"}), 2);
  EXPECT_EQ(complaint,
            "orrery: there is no option --durabilty; did you mean --durability?\n"
            "'orrery help serve' shows how it is used\n");
  EXPECT_EQ(run({"--verson"}), 2);
  EXPECT_THAT(complaint, HasSubstr("did you mean --version?"));
  EXPECT_EQ(run({"serve", "now"}), 2);
  EXPECT_THAT(complaint, HasSubstr("'now' is one argument too many"));
}

TEST_F(CommandLineTest, AValueThatIsWrongIsASentence) {
  EXPECT_EQ(run({"serve", "--durability", "fast"}), 2);
  EXPECT_THAT(complaint,
              HasSubstr("orrery: --durability must be strict or relaxed, not \"fast\"\n"));
  EXPECT_EQ(run({"serve", "--threads", "many"}), 2);
  EXPECT_THAT(complaint, HasSubstr("--threads must be from 0 to 256, not many"));
  EXPECT_EQ(run({"serve", "--threads", "999"}), 2);
  EXPECT_THAT(complaint, HasSubstr("--threads must be from 0 to 256, not 999"));
  EXPECT_EQ(run({"serve", "--count", "many"}), 2);
  EXPECT_THAT(complaint, HasSubstr("--count takes a number, not \"many\""));
  EXPECT_EQ(run({"serve", "--threads"}), 2);
  EXPECT_THAT(complaint, HasSubstr("--threads needs a value"));
  EXPECT_EQ(run({"leases", "status"}), 2);
  EXPECT_THAT(complaint, HasSubstr("container is required"));
  EXPECT_EQ(run({"serve", "--durability", "RELAXED"}), 0);
  EXPECT_EQ(durability, "relaxed");
}

}  // namespace
}  // namespace orrery::cli
