#include "cli/manual/man_page.h"

#include <algorithm>
#include <cctype>
#include <regex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command_line.h"
#include "cli/manual/roff.h"

namespace orrery::cli {
namespace {

/// "run the server": how a page calls its subject after its name.
std::string purpose(const CommandTree& command) {
  std::string line = headline(command.description);
  const std::string title = command.name + ": ";
  const bool is_titled =
      line.size() > title.size() &&
      std::equal(title.begin(), title.end(), line.begin(), [](unsigned char a, unsigned char b) {
        return std::tolower(a) == std::tolower(b);
      });
  if (is_titled) line.erase(0, title.size());
  const bool is_word = line.size() > 1 && std::islower(static_cast<unsigned char>(line[1])) != 0;
  if (is_word) line[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(line[0])));
  return line;
}

/// The values that follow an option: " PATH", " NUMBER NUMBER".
std::string values_in_roff(const CommandOption& option) {
  std::string text;
  for (std::size_t i = 0; i < option.value_count; ++i) {
    text += " " + roff_italic(option.placeholder);
  }
  return text;
}

std::string synopsis(const CommandTree& command) {
  std::string line = roff_bold(command.full_name);
  for (const CommandOption& option : command.options) {
    if (option.required) line += " " + roff_bold(option.names.back()) + values_in_roff(option);
  }
  if (!command.options.empty()) line += " [" + roff_italic("OPTION") + "]...";
  for (const CommandOption& positional : command.positionals) {
    const std::string name =
        roff_italic(positional.names.front()) + (positional.repeatable ? "..." : "");
    line += positional.required ? " " + name : " [" + name + "]";
  }
  if (!command.commands.empty()) line += " " + roff_italic("COMMAND");
  return line + "\n";
}

/// Facts about an option besides its description, in sentences.
std::string conditions(const CommandOption& option) {
  std::vector<std::string> sentences;
  if (option.required) sentences.emplace_back("Required.");
  if (!option.default_value.empty()) {
    sentences.push_back(fmt::format("Default: {}.", roff(option.default_value)));
  }
  if (!option.variable.empty()) {
    sentences.push_back(fmt::format("Environment variable: {}.", roff_bold(option.variable)));
  }
  if (!option.needs.empty()) {
    sentences.push_back(roff(fmt::format("Needs {}.", fmt::join(option.needs, ", "))));
  }
  if (!option.excludes.empty()) {
    sentences.push_back(roff(fmt::format("Not with {}.", fmt::join(option.excludes, ", "))));
  }
  if (sentences.empty()) return {};
  return fmt::format(".br\n{}\n", fmt::join(sentences, " "));
}

std::string entry(const CommandOption& option, bool is_positional) {
  std::string head;
  for (const std::string& name : option.names) {
    if (!head.empty()) head += ", ";
    head += is_positional ? roff_italic(name) : roff_bold(name);
  }
  // A positional needs its values shown only where they are words.
  if (!is_positional) {
    head += values_in_roff(option);
  } else if (option.kind == ValueKind::Words) {
    head += fmt::format(" ({})", roff(option.placeholder));
  }
  if (option.repeatable) head += " ...";
  return fmt::format(".TP\n{}\n{}{}", head, roff_lines(option.description), conditions(option));
}

/// Options under the headings that help has them under.
std::string options_section(const CommandTree& command) {
  std::vector<std::string> groups;
  for (const CommandOption& option : command.options) {
    if (std::ranges::find(groups, option.group) == groups.end()) groups.push_back(option.group);
  }
  std::string text;
  for (const std::string& group : groups) {
    text += text.empty() ? ".SH OPTIONS\n" : fmt::format(".SS \"{}\"\n", roff(group));
    for (const CommandOption& option : command.options) {
      if (option.group == group) text += entry(option, /*is_positional=*/false);
    }
  }
  return text;
}

std::string arguments_section(const CommandTree& command) {
  if (command.positionals.empty()) return {};
  std::string text = ".SH ARGUMENTS\n";
  for (const CommandOption& each : command.positionals) text += entry(each, /*is_positional=*/true);
  return text;
}

std::string commands_section(const CommandTree& command) {
  if (command.commands.empty()) return {};
  std::string text = ".SH COMMANDS\n";
  for (const CommandTree& each : command.commands) {
    text += fmt::format(".TP\n{}\n{}", roff_bold(each.full_name), roff_lines(each.description));
  }
  return text;
}

std::string exit_status_section(const CommandTree& command) {
  std::string text = fmt::format(
      ".SH \"EXIT STATUS\"\n"
      ".TP\n0\nIt is done.\n"
      ".TP\n{}\nIt failed.\n"
      ".TP\n{}\nThe command line or the configuration makes no sense; nothing was tried.\n",
      kFailure, kWrongUsage);
  static const std::regex kOwnStatus("exit (status|code) \\d", std::regex::icase);
  std::string words = command.description + "\n" + command.footer;
  // Exit statuses of commands that a command starts are another matter: --exec tells of those.
  for (const CommandOption& option : command.options) {
    if (option.kind == ValueKind::None) words += "\n" + option.description;
  }
  if (std::regex_search(words, kOwnStatus)) {
    text += ".PP\nWhat this command's own statuses mean is told where it is described above.\n";
  }
  return text;
}

/// A footer up to its line "Examples:", and what comes after it.
struct FooterParts {
  std::string notes;
  std::string examples;
};

FooterParts parts_of_footer(const std::string& footer) {
  static const std::regex kHeading("(^|\n)Examples?:\n");
  std::smatch found;
  if (!std::regex_search(footer, found, kHeading)) return {footer, ""};
  return {found.prefix().str(), found.suffix().str()};
}

std::string see_also_section(const CommandTree& command, const CommandTree* parent) {
  std::vector<std::string> names;
  if (parent != nullptr) names.push_back(page_name(*parent));
  if (parent != nullptr && parent->full_name.find(' ') != std::string::npos) {
    names.insert(names.begin(), parent->full_name.substr(0, parent->full_name.find(' ')));
  }
  for (const CommandTree& each : command.commands) names.push_back(page_name(each));
  if (names.empty()) return {};
  std::string text = ".SH \"SEE ALSO\"\n";
  for (const std::string& name : names) {
    text += roff_bold(name) + "(1)" + (&name == &names.back() ? "\n" : ",\n");
  }
  return text;
}

}  // namespace

std::string page_name(const CommandTree& command) {
  std::string name = command.full_name;
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string man_page(const CommandTree& command, const CommandTree* parent) {
  const std::string name = page_name(command);
  std::string title = name;
  for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const FooterParts footer = parts_of_footer(command.footer);
  std::string page;
  page += ".\\\" Made by 'orrery man' from the options of the program.\n";
  page += fmt::format(".TH {} 1 \"\" \"Orrery {}\" \"Orrery\"\n", roff(title), ORRERY_VERSION);
  // Options and names of variables can't be hyphenated, nor can lines with them be stretched.
  page += ".nh\n.ad l\n";
  page += fmt::format(".SH NAME\n{} \\- {}\n", roff(name), roff(purpose(command)));
  page += ".SH SYNOPSIS\n" + synopsis(command);
  page += ".SH DESCRIPTION\n" + roff_lines(command.description);
  if (!footer.notes.empty()) page += ".PP\n" + roff_lines(footer.notes);
  page += commands_section(command);
  page += arguments_section(command);
  page += options_section(command);
  page += exit_status_section(command);
  if (!footer.examples.empty()) page += ".SH EXAMPLES\n" + roff_lines(footer.examples);
  page += see_also_section(command, parent);
  return page;
}

}  // namespace orrery::cli
