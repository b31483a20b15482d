// SPDX-License-Identifier: Apache-2.0
#include "tools/man/man_page.h"

#include "tools/common/report.h"

#include <cstring>
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

/// `begin` and words, in lines of at most `width` columns unless a word is longer; the later ones are indented.
/// `typed`: a shell takes them as one line, so they end in a backslash. No quoted text is divided, and no option from
/// its value.
std::string in_lines(const std::string &begin, const std::string &words, std::size_t width, std::size_t indent,
                     bool typed) {
  const std::string divided = typed ? " \\" : "";
  std::string out, line = begin, word;
  bool has_words = false;
  char quote = 0;
  const auto take_word = [&] {
    if (has_words && line.size() + 1 + word.size() + divided.size() > width) {
      out += line + divided + "\n";
      line = std::string(indent, ' ') + word;
    } else {
      line += (has_words ? " " : "") + word;
    }
    has_words = true;
    word.clear();
  };
  for (std::size_t at = 0; at < words.size(); ++at) {
    const char c = words[at];
    const bool is_option = typed && word.starts_with('-') && word.find(' ') == word.npos;
    const bool has_value = is_option && at + 1 < words.size() && std::strchr("-|<>\\ ", words[at + 1]) == nullptr;
    if (c == ' ' && quote == 0 && !has_value) {
      take_word();
      continue;
    }
    word += c;
    if (typed && (c == quote || (quote == 0 && (c == '\'' || c == '"'))))
      quote = quote == 0 ? c : 0;
  }
  take_word();
  return out + line;
}

/// An aligned line as a terminal has room for it. The text after a wide gap keeps its column, or is in lines of its own
/// if that column is far to the right.
std::string in_columns(std::string line, bool typed) {
  constexpr std::size_t kColumns = 80 - 7; // man indents by 7
  constexpr std::size_t kNarrow = 30;
  if (line.size() <= kColumns)
    return line;
  const bool goes_on = typed && line.ends_with(" \\");
  line.resize(line.size() - (goes_on ? 2 : 0));
  const std::size_t begin = line.find_first_not_of(' '), deeper = begin + 4, gap = line.find("  ", begin);
  if (begin + kNarrow > kColumns) // the text of the command above
    return in_lines(std::string(6, ' '), line.substr(begin), kColumns, 6, false);
  const auto command = [&](std::size_t end) {
    return in_lines(line.substr(0, begin), line.substr(begin, end - begin), kColumns - (goes_on ? 2 : 0), deeper,
                    typed);
  };
  if (gap == line.npos)
    return command(line.size()) + (goes_on ? " \\" : "");
  const std::size_t column = line.find_first_not_of(' ', gap);
  const std::string text = line.substr(column);
  if (column + kNarrow <= kColumns)
    return in_lines(line.substr(0, column), text, kColumns, column, false);
  return command(gap) + "\n" + in_lines(std::string(deeper, ' '), text, kColumns, deeper, false);
}

/// Explanations as paragraphs, and indented lines as they are if there is room for them.
std::string explanations(const std::string &more) {
  std::vector<std::string> lines;
  std::istringstream in(more);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  std::string text = lines.front() == kExamples ? "" : ".SH DESCRIPTION\n";
  bool aligned = false, typed = false;
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
      text += escaped(aligned ? in_columns(line, typed) : line) + "\n";
    typed = typed || line == kExamples;
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
