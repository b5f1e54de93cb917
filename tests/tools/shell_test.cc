// `trainer completion` and `trainer man` are both generated from the help texts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "in_process.h"
#include "support/temp_folder.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// Returns the completions that bash offers for the last of `words`, one per line.
std::string Offered(const std::string& words) {
  const TempFolder folder;
  WriteText(folder / "net.prototxt", "");
  WriteText(folder / "completion.bash", RunHere({"completion"}).out);
  WriteText(folder / "ask.bash",
            Join("cd \"${0%/*}\" && . ./completion.bash && COMP_WORDS=(trainer ", words,
                 ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_trainer\n",
                 "printf '%s\\n' \"${COMPREPLY[@]}\" > offered\n"));
  EXPECT_EQ(std::system(Join("bash '", folder / "ask.bash", "'").c_str()), 0) << words;
  return ReadText(folder / "offered");
}

TEST(CompletionTest, BashOffersVerbsFlagsAndFiles) {
  EXPECT_EQ(Offered("dep"), "deploy\n");
  EXPECT_THAT(Offered("\"\""), AllOf(HasSubstr("train\n"), HasSubstr("help\n")));
  EXPECT_EQ(Offered("train --sol"), "--solver=\n");
  EXPECT_THAT(Offered("train --"), AllOf(HasSubstr("--requeue\n"), HasSubstr("--minloglevel=\n"),
                                         HasSubstr("--gpu=\n"), HasSubstr("--memory=\n")));
  EXPECT_EQ(Offered("train --solver = net"), "net.prototxt\n");
  EXPECT_EQ(Offered("help pred"), "predict\n");
}

TEST(ManTest, HoldsEveryVerbAndFlagAndNoStrayRequest) {
  const Outcome man = RunHere({"man"});
  ASSERT_EQ(man.exit_code, 0) << man.err;
  EXPECT_THAT(man.out, StartsWith(".TH TRAINER 1 "));
  for (const char* part : {"\n.SH train\ntrain a net", "\n.SH deploy\n",
                           "\n.B \\-\\-solver=FILE\nthe solver (required)", "\n.B \\-\\-gpu=ID\n",
                           "\n.SH FLAGS OF EVERY VERB\n", "\n.B \\-\\-minloglevel=N\n"}) {
    EXPECT_THAT(man.out, HasSubstr(part));
  }
  for (const std::string& line : SplitList(man.out, '\n')) {
    if (line[0] != '.') continue;
    EXPECT_TRUE(Finds(line, R"(^\.(TH|SH|B|I|TP|PP|br|nf|fi)( |$))")) << line;
  }
}

}  // namespace
}  // namespace trainer
