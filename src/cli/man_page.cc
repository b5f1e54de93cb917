#include "man_page.h"

#include "trainer/base/process/program_info.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/common_flags.h"
#include "trainer/cli/help.h"
#include "trainer/cli/verb.h"

namespace trainer {
namespace {

// Returns text for roff: backslashes and dashes are escaped so that they print as they are, and no
// line begins a request.
std::string Roff(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    line_begins = c == '\n';
  }
  return out;
}

// Returns text in which each line of `text` begins a line of the page. Empty lines are left out.
std::string ManLines(std::string_view text) {
  std::string out;
  for (const std::string& line : SplitList(text, '\n')) {
    out += Join(out.empty() ? "" : "\n.br\n", Roff(line));
  }
  return out;
}

// Returns text whose lines roff neither fills nor joins.
std::string Literal(std::string_view text) { return Join(".nf\n", Roff(text), "\n.fi\n"); }

// Returns a paragraph for each flag that is not hidden, with its default and whether it is
// required.
std::string FlagItems(std::span<const Flag> flags) {
  std::string out;
  for (const Flag& flag : flags) {
    if (flag.hidden) continue;
    std::string help(flag.help);
    if (flag.required) help += " (required)";
    if (!flag.fallback.empty()) help += Join(" (default ", flag.fallback, ")");
    out += Join(".TP\n.B ", Roff(FlagSpelling(flag)), "\n", Roff(help), "\n");
  }
  return out;
}

// Returns the section of one verb: summary, usage, text, examples and flags.
std::string VerbSection(const VerbInfo& info) {
  const VerbPage page = VerbRegistry::Get().PageOf(info.name);
  return Join(".SH ", Roff(info.name), "\n", Roff(page.summary), "\n.PP\n", Literal(page.usage),
              ".PP\n", ManLines(page.text), "\n.PP\n", Literal(page.examples),
              FlagItems(DeclaredVerb(info).flags.flags()));
}

}  // namespace

std::string ManPage() {
  std::string page =
      Join(".TH TRAINER 1 \"\" \"trainer ", ProgramVersion(),
           "\"\n.SH NAME\ntrainer \\- train, test and time neural nets written as Caffe prototxt "
           "files\n.SH SYNOPSIS\n.B trainer\n.I VERB\n[flags]\n");
  for (const auto& [name, info] : VerbRegistry::Get().all()) page += VerbSection(info);
  return page + ".SH FLAGS OF EVERY VERB\n" + FlagItems(CommonFlags());
}

}  // namespace trainer
