// SPDX-License-Identifier: Apache-2.0
#include "tools/man/man_page.h"

#include "tools/common/report.h"

#include <sstream>
#include <vector>

namespace cudaq::realtime::tools {
namespace {

// Lines of the help that are headings of a page.
constexpr const char *kExamples = "Examples:", *kExitStatus = "Exit status:";

/// Escapes characters that roff would change or read as a request. A dash of the text stays an ASCII dash, so that
/// options can be copied out of the page.
std::string escaped(const std::string &text) {
  std::string out;
  bool at_line_start = true;
  for (const char c : text) {
    if (at_line_start && (c == '.' || c == '\''))
      out += "\\&";
    switch (c) {
    case '\\':
      out += "\\e";
      break;
    case '-':
      out += "\\-";
      break;
    case '\'':
      out += "\\(aq";
      break;
    case '`':
      out += "\\(ga";
      break;
    case '^':
      out += "\\(ha";
      break;
    case '~':
      out += "\\(ti";
      break;
    default:
      out += c;
    }
    at_line_start = c == '\n';
  }
  return out;
}

std::string upper_case(std::string text) {
  for (char &c : text)
    c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

std::string option_value(const option_model &o) {
  std::string value = o.value;
  if (!o.choices.empty()) {
    value.clear();
    for (const std::string &choice : o.choices)
      value += (value.empty() ? "" : "|") + choice;
  }
  return value.empty() ? "" : " \\fI" + escaped(value) + "\\fR";
}

std::string option_entry(const option_model &o) {
  std::string names, text = o.text;
  for (const std::string &name : o.names)
    names += (names.empty() ? "" : ", ") + ("\\fB" + escaped(name) + "\\fR");
  if (o.is_argument)
    names = "\\fI" + escaped(o.value) + "\\fR";
  if (!o.limits.empty() && o.limits != "NAME")
    text += fmt::format(" ({})", o.limits);
  if (!o.standard.empty() && !o.value.empty())
    text += fmt::format(" [default: {}]", o.standard);
  return ".TP\n" + names + (o.is_argument ? "" : option_value(o)) + "\n" + escaped(text) + "\n";
}

std::string synopsis(const command_model &command) {
  std::string text = "\\fB" + escaped(program_name(command, ' ')) + "\\fR";
  if (!command.commands.empty())
    return text + " \\fISUBCOMMAND\\fR [\\fIOPTIONS\\fR]\n";
  text += " [\\fIOPTIONS\\fR]";
  for (const option_model &o : command.options)
    if (o.is_argument)
      text += " \\fI" + escaped(o.value) + "\\fR" + (o.is_list ? "..." : "");
  return text + "\n";
}

/// A line that is typed or aligned: its columns have a meaning.
bool is_aligned(const std::string &line) { return line.starts_with("  "); }

/// Explanations as paragraphs, and indented lines as they are.
std::string explanations(const std::string &more) {
  std::vector<std::string> lines;
  std::istringstream in(more);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  std::string text = lines.front() == kExamples ? "" : ".SH DESCRIPTION\n";
  bool aligned = false;
  for (const std::string &line : lines) {
    if (line == kExitStatus)
      break; // a section of its own
    if (aligned != is_aligned(line))
      text += aligned ? ".fi\n" : ".PP\n.nf\n";
    aligned = is_aligned(line);
    if (line.empty())
      text += ".PP\n";
    else if (line == kExamples)
      text += ".SH EXAMPLES\n";
    else
      text += escaped(line) + "\n";
  }
  return text + (aligned ? ".fi\n" : "");
}

std::string see_also(const command_model &program, const command_model &command) {
  std::string text;
  for (const command_model *other : all_commands(program))
    if (other != &command)
      text += fmt::format("{}.BR {} (1)", text.empty() ? "" : ",\n", escaped(program_name(*other, '-')));
  return ".SH SEE ALSO\n" + text + "\n";
}

} // namespace

std::string man_page(const command_model &program, const command_model &command) {
  const std::string name = program_name(command, '-');
  std::string page = fmt::format(".\\\" Written by the build of {0}\n.TH {1} 1 \"\" \"{0} {2}\" \"{0}\"\n",
                                 program.program, escaped(upper_case(name)), program_version());
  page += ".SH NAME\n" + escaped(name) + " \\- " + escaped(command.text) + "\n.SH SYNOPSIS\n" + synopsis(command);
  if (!command.more.empty())
    page += explanations(command.more);
  if (!command.commands.empty()) {
    page += ".SH SUBCOMMANDS\n";
    for (const command_model &below : command.commands)
      page += ".TP\n.BR " + escaped(program_name(below, '-')) + " (1)\n" + escaped(below.text) + "\n";
  }
  page += ".SH OPTIONS\n";
  for (const option_model &o : command.options)
    page += option_entry(o);
  page += ".SH EXIT STATUS\n";
  for (const auto &[status, text] : kExitMeanings)
    page += fmt::format(".TP\n{}\n{}\n", status, escaped(text));
  return page + see_also(program, command);
}

} // namespace cudaq::realtime::tools
