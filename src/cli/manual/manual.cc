// orrery completion, orrery man: what shells and man want to know about the commands, printed by
// the program itself.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/manual/command_tree.h"
#include "cli/manual/completion.h"
#include "cli/manual/man_page.h"

namespace orrery::cli {
namespace {

struct ManOptions {
  std::vector<std::string> path;
  std::string directory;
};

Error no_such_command(const CommandTree& tree, std::span<const std::string> path) {
  const CommandTree* parent = &tree;
  std::size_t known = 0;
  while (const CommandTree* next = parent->find(path.subspan(known, 1))) {
    parent = next;
    ++known;
  }
  std::vector<std::string> names;
  names.reserve(parent->commands.size());
  for (const CommandTree& each : parent->commands) names.push_back(each.name);
  const auto meant = nearest(path[known], names);
  return bad_request(fmt::format("there is no command '{} {}'{}", parent->full_name, path[known],
                                 meant ? fmt::format("; did you mean '{}'?", *meant) : ""));
}

int print_page(const CommandTree& tree, std::span<const std::string> path) {
  const CommandTree* command = tree.find(path);
  if (command == nullptr) return complain_of_usage(no_such_command(tree, path));
  const CommandTree* parent = path.empty() ? nullptr : tree.find(path.first(path.size() - 1));
  std::fputs(man_page(*command, parent).c_str(), stdout);
  return 0;
}

/// The pages of this command and all below it.
Result<> write_pages(const CommandTree& command, const CommandTree* parent,
                     const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / (page_name(command) + ".1");
  std::ofstream file(path, std::ios::trunc);
  file << man_page(command, parent);
  file.close();
  if (!file) return Error(ErrorCode::Unavailable, fmt::format("cannot write {}", path.string()));
  for (const CommandTree& each : command.commands) {
    ORRERY_TRY(write_pages(each, &command, directory));
  }
  return {};
}

int write_all_pages(const CommandTree& tree, const std::string& directory) {
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  if (failure) {
    return complain(Error(ErrorCode::Unavailable,
                          fmt::format("cannot make {}: {}", directory, failure.message())));
  }
  const auto outcome = write_pages(tree, nullptr, directory);
  return outcome ? 0 : complain(outcome.error());
}

std::string completion_for(const std::string& shell, const CommandTree& tree) {
  if (shell == "bash") return bash_completion(tree);
  return shell == "zsh" ? zsh_completion(tree) : fish_completion(tree);
}

}  // namespace

void add_completion(CLI::App& app, int& /*exit_code*/) {
  auto shell = std::make_shared<std::string>();
  auto* command = app.add_subcommand(
      "completion", "Print a script with which a shell completes commands and options");
  command->footer(
      "Examples:\n"
      "  source <(orrery completion bash)                                 in ~/.bashrc\n"
      "  source <(orrery completion zsh)                                  in ~/.zshrc, after "
      "compinit\n"
      "  orrery completion fish > ~/.config/fish/completions/orrery.fish");
  choose(command->add_option("shell", *shell, "Which one")->required(), {"bash", "zsh", "fish"});
  command->callback(
      [&app, shell] { std::fputs(completion_for(*shell, CommandTree::of(app)).c_str(), stdout); });
}

void add_man(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ManOptions>();
  auto* command = app.add_subcommand("man", "Print the man page of a command, in roff");
  command->footer(
      "Examples:\n"
      "  orrery man backup create | man -l -\n"
      "  orrery man --all ~/.local/share/man/man1     and then: man orrery-backup-create");
  auto* path =
      command->add_option("command", options->path, "Which one (default: the program as a whole)")
          ->type_name("COMMAND");
  command
      ->add_option(
          "--all", options->directory,
          "Write all pages to this directory instead, as orrery.1, orrery-serve.1 and so on")
      ->type_name("DIR")
      ->excludes(path);
  command->callback([&app, options, &exit_code] {
    const CommandTree tree = CommandTree::of(app);
    exit_code = options->directory.empty() ? print_page(tree, options->path)
                                           : write_all_pages(tree, options->directory);
  });
}

}  // namespace orrery::cli
