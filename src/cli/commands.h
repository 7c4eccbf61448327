// The commands of the binary. Each adds itself to the command line and runs when it is chosen.
#pragma once

namespace CLI {
class App;
}

namespace orrery::cli {

void add_serve(CLI::App& app, int& exit_code);
void add_emulator(CLI::App& app, int& exit_code);
void add_feed(CLI::App& app, int& exit_code);
void add_query(CLI::App& app, int& exit_code);
void add_process(CLI::App& app, int& exit_code);
void add_leases(CLI::App& app, int& exit_code);
void add_copy(CLI::App& app, int& exit_code);
void add_backup(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_keygen(CLI::App& app, int& exit_code);
void add_keys(CLI::App& app, int& exit_code);
/// split and merge.
void add_topology(CLI::App& app, int& exit_code);
/// These two tell of all commands, also of those that are added after them.
void add_completion(CLI::App& app, int& exit_code);
void add_man(CLI::App& app, int& exit_code);

}  // namespace orrery::cli
