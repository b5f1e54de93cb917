// `trainer man`: the pages of help as a manual page, for `man`.

#include <iostream>

#include "trainer/base/text/text.h"
#include "verb.h"

namespace trainer {
namespace {

// Text for roff: backslashes and dashes as they are, and no line that begins a request.
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

// Each line of `text` begins a line of the page.
std::string ManLines(std::string_view text) {
  std::string out;
  for (const std::string& line : SplitList(text, '\n')) {
    out += Join(out.empty() ? "" : "\n.br\n", Roff(line));
  }
  return out;
}

std::string Literal(std::string_view text) { return Join(".nf\n", Roff(text), "\n.fi\n"); }

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

std::string VerbSection(const std::string& name) {
  const VerbDoc doc = VerbRegistry::Get().Make(name)->Doc();
  return Join(".SH ", Roff(name), "\n", Roff(doc.summary), "\n.PP\n", Literal(doc.usage), ".PP\n",
              ManLines(doc.text), "\n.PP\n", Literal(doc.examples), FlagItems(doc.flags));
}

class Man final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {.task = VerbTask::kShell,
            .summary = "print the manual page",
            .usage = "trainer man",
            .text =
                "The page has the text of 'trainer help' and of 'trainer help VERB' for all verbs, "
                "in the format of man.",
            .examples =
                "trainer man | man -l -\n"
                "trainer man > /usr/local/share/man/man1/trainer.1",
            .flags = {}};
  }

  int Run(const Flags&) override {
    std::cout << ".TH TRAINER 1 \"\" \"trainer " TRAINER_VERSION "\"\n.SH NAME\n"
              << "trainer \\- train, test and time neural nets written as Caffe prototxt files\n"
              << ".SH SYNOPSIS\n.B trainer\n.I VERB\n[flags]\n";
    for (const std::string& name : VerbRegistry::Get().Names()) std::cout << VerbSection(name);
    std::cout << ".SH FLAGS OF EVERY VERB\n" << FlagItems(LogFlags());
    return 0;
  }
};

const RegisterVerb<Man> kMan("man");

}  // namespace
}  // namespace trainer
