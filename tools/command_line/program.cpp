// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/program.h"

#include "tools/command_line/refusal.h"
#include "tools/common/end_watch.h"
#include "tools/common/interrupt.h"
#include "tools/common/standard_streams.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno> // program_invocation_short_name
#include <cstdlib>
#include <exception>
#include <malloc.h>
#include <new>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace cudaq::realtime::tools {
namespace {

std::string joined(int argc, char **argv) {
  std::string line;
  for (int i = 0; i < argc; ++i)
    line += (i == 0 ? "" : " ") + std::string(argv[i]);
  return line;
}

/// --json is among the words. For a command line that cannot be parsed.
bool names_json(int argc, char **argv) {
  return std::any_of(argv, argv + argc,
                     [](std::string_view word) { return word == "--json" || word.starts_with("--json="); });
}

/// A library, the loader or the project's own code has turned a refused allocation into this text.
bool is_about_memory(std::string_view text) {
  constexpr std::string_view kTexts[] = {"std::bad_alloc", "out of memory", "annot allocate"}; // also strerror's
  return std::ranges::any_of(kTexts, [text](std::string_view part) { return text.find(part) != text.npos; });
}

/// Memory that is refused in a function that must not throw ends the program: CLI11's look-up of an option allocates,
/// and is noexcept, like steps of libstdc++'s directories, which end without an exception; CLI11's validators allocate
/// before main. The status is that of a refusal, so that a service is started again.
std::terminate_handler usual_terminate = nullptr;       ///< written before a second thread is there
constinit thread_local bool memory_was_refused = false; ///< by operator new, which calls its handler then
[[noreturn]] void note_refused_memory() {
  memory_was_refused = true;
  throw std::bad_alloc();
}
[[noreturn]] void end_without_memory() {
  bool is_about_memory = memory_was_refused;
  try {
    if (const std::exception_ptr failure = std::current_exception())
      std::rethrow_exception(failure);
  } catch (const std::bad_alloc &) {
    is_about_memory = true;
  } catch (...) { // the usual handler prints what it is
    is_about_memory = false;
  }
  if (is_about_memory) {
    write_parts({program_invocation_short_name, ": out of memory: std::bad_alloc where nothing may be thrown\n"});
    _exit(kExitRefused);
  }
  usual_terminate();
  std::abort();
}

/// Before the constructors of all objects of the program, which have no priority.
[[gnu::constructor(101)]] void end_with_a_status() {
  usual_terminate = std::set_terminate(&end_without_memory);
  std::set_new_handler(&note_refused_memory);
}

const char *text_of(const std::exception &e) {
  return dynamic_cast<const std::bad_alloc *>(&e) != nullptr ? "out of memory" : e.what();
}

/// Runs the subcommand. An exception becomes a message and an exit status.
int run_chosen(const chosen_command &chosen, const output &out) {
  try {
    out.open_files();
    if (!chosen.after_dashes.empty() && !chosen.takes_words)
      throw usage_error("the subcommand takes no words after --: " + chosen.after_dashes.front());
    for (const std::string &note : chosen.notes)
      print_refusal(chosen.output.name(), note);
    return chosen.run(out);
  } catch (const usage_error &e) {
    return out.refuse(e.what(), is_about_memory(e.what()) ? kExitRefused : kExitUsage);
  } catch (const check_failed &e) {
    return out.refuse(e.what(), kExitCheckFailed);
  } catch (const std::exception &e) {
    return out.refuse(text_of(e), kExitRefused);
  }
}

int parse_and_run(const program_description &program, int argc, char **argv) {
  CLI::App app;
  chosen_command chosen;
  declare_program(program, app, chosen);
  chosen.output.command_line = joined(argc, argv);
  // Before the parser sees them: it takes a -- after an option with an optional value as that option's end.
  const auto dashes = std::find(argv, argv + argc, std::string_view("--"));
  if (dashes != argv + argc)
    chosen.after_dashes.assign(dashes + 1, argv + argc);
  argc = static_cast<int>(dashes - argv);
  if (argc == 1)
    print_error("{}", program.first_steps);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError &e) {
    const refusal why = explain(app, e);
    chosen.output.command = why.command;
    chosen.output.json = names_json(argc, argv);
    chosen.output.json_file.clear(); // which word is the file is not certain
    const int status = output(chosen.output).refuse(why.reason, kExitUsage);
    print_error("{}\n", why.hint);
    return status;
  }
  return run_chosen(chosen, output(chosen.output));
}

/// What stdout could not take is lost, so `status` must not be good then. For what is printed without a report, and for
/// the report itself.
int with_all_written(const char *program, int status) {
  const std::string problem = status == kExitOk ? stdout_problem() : "";
  if (problem.empty())
    return status;
  print_refusal(program, problem);
  return kExitRefused;
}

/// Each thread that allocates gets an arena of its own from the C library, which reserves 64 MiB of addresses for it.
/// If they are limited (ulimit -v), it tries this again at each allocation of the thread, which then decodes 50 times
/// slower. So all threads share one arena then.
void use_few_addresses() {
  constexpr rlim_t kOfAThread = rlim_t{128} << 20; // to align 64 MiB
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      limit.rlim_cur / kOfAThread < std::thread::hardware_concurrency() + rlim_t{4})
    mallopt(M_ARENA_MAX, 1);
}

} // namespace

void declare_program(const program_description &program, CLI::App &app, chosen_command &chosen) {
  app.name(program.name);
  app.description(program.text);
  std::string footer = program.footer;
  for (const auto &[status, text] : kExitMeanings)
    footer += fmt::format("\n  {}  {}", status, text);
  app.footer(footer);
  app.set_version_flag("--version", fmt::format("{} {}", program.name, program_version()));
  app.require_subcommand(1);
  chosen.output.program = program.name;
  program.add_subcommands(app, chosen);
}

int run_program(const program_description &program, int argc, char **argv) {
  standard_streams::open_closed();
  use_few_addresses();
  end_on_signals_as_first_process();
  try {
    int status = kExitOk;
    {
      const end_watch watch(program.name); // not of the last bytes: what reads stdout may be slow
      status = parse_and_run(program, argc, argv);
    }
    return with_all_written(program.name, status);
  } catch (const std::exception &e) {
    print_refusal(program.name, text_of(e));
    return kExitRefused;
  }
}

} // namespace cudaq::realtime::tools
