// Answers to command lines, right and wrong ones.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "in_process.h"
#include "support/temp_folder.h"
#include "trainer/base/file/file.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const char* const kVerbs[] = {"check",  "dataset",  "deploy",  "device_query", "doctor",  "draw",
                              "export", "features", "find-lr", "import",       "inspect", "job",
                              "layers", "log",      "pack",    "plan",         "predict", "report",
                              "show",   "solver",   "status",  "sweep",        "test",    "time",
                              "train",  "upgrade"};

size_t WidestLine(const std::string& text) {
  std::istringstream lines(text);
  size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  return widest;
}

// Expects a refusal: nothing on stdout, one line on stderr, exit code `code`.
void ExpectRefused(const std::vector<std::string>& arguments, int code, const std::string& part) {
  const Outcome outcome = RunHere(arguments);
  EXPECT_EQ(outcome.exit_code, code) << outcome.err;
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.ErrLines(), ElementsAre(StartsWith("error: ")));
  EXPECT_THAT(outcome.err, HasSubstr(part));
}

TEST(HelpTest, ListsEveryVerbOnStdout) {
  for (const auto& arguments : {std::vector<std::string>{}, {"help"}, {"--help"}, {"-h"}}) {
    const Outcome outcome = RunHere(arguments);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.err, IsEmpty());
    for (const char* verb : kVerbs) {
      EXPECT_THAT(outcome.out, HasSubstr(std::string("\n  ") + verb + " "));
    }
    EXPECT_LE(WidestLine(outcome.out), 80u);
  }
}

TEST(HelpTest, HasAPageWithExamplesForEveryVerb) {
  for (const std::string verb : kVerbs) {
    const Outcome page = RunHere({"help", verb});
    EXPECT_EQ(page.exit_code, 0);
    EXPECT_THAT(page.out, StartsWith("trainer " + verb + ": "));
    EXPECT_THAT(page.out, HasSubstr("\nusage: trainer " + verb));
    EXPECT_THAT(page.out, HasSubstr("\nexamples:\n  trainer " + verb));
    EXPECT_LE(WidestLine(page.out), 80u) << page.out;
  }
}

TEST(HelpTest, HasAPageForEachTaskOfDatasetWithItsOwnFlags) {
  const Outcome pack = RunHere({"help", "dataset", "pack"});
  EXPECT_EQ(pack.exit_code, 0) << pack.err;
  EXPECT_THAT(pack.out, StartsWith("trainer dataset pack: "));
  EXPECT_THAT(pack.out, HasSubstr("\nusage: trainer dataset pack ROOT LIST SET, or FOLDER SET"));
  EXPECT_THAT(pack.out, HasSubstr("\n  trainer dataset pack photos/ train_lmdb --shuffle\n"));
  for (const char* own : {"--shuffle", "--val=PART", "--write_crc", "--threads=N", "--backend="}) {
    EXPECT_THAT(pack.out, HasSubstr(own));
  }
  for (const char* other : {"--train=N", "--cifar100_labels", "--stratified", "--resize_height"}) {
    EXPECT_THAT(pack.out, Not(HasSubstr(other)));
  }
  EXPECT_LE(WidestLine(pack.out), 80u);
  EXPECT_EQ(RunHere({"dataset", "pack", "--help"}).out, pack.out);
  ExpectRefused({"help", "dataset", "pakc"}, 64,
                "'trainer dataset' has no task 'pakc'; it has: "
                "bench");
  ExpectRefused({"help", "train", "pack"}, 64, "'trainer help' needs one verb");
}

TEST(HelpTest, ShowsThePageOfAVerbWhateverItsOtherFlags) {
  const std::string page = RunHere({"help", "train"}).out;
  for (const auto& arguments : {std::vector<std::string>{"train", "--help"},
                                {"train", "-h"},
                                {"train", "--no-such-flag", "--help"}}) {
    EXPECT_EQ(RunHere(arguments).out, page);
  }
}

TEST(HelpTest, ShowsEveryFlagOfTrainWithItsDefault) {
  const std::string page = RunHere({"help", "train"}).out;
  for (const char* flag :
       {"--solver=FILE", "--snapshot=FILE", "--weights=FILES", "--level=N", "--stage=LIST",
        "--gpu=ID", "--tf32", "--deterministic", "--sigint_effect=EFFECT", "--sighup_effect=EFFECT",
        "--sigterm_effect=EFFECT", "--sigusr1_effect=EFFECT", "--stop_exit_code=N"}) {
    EXPECT_THAT(page, HasSubstr(flag));
  }
  EXPECT_THAT(page, HasSubstr("what SIGHUP does (default snapshot)"));
  EXPECT_THAT(page, Not(HasSubstr("poisoned"))) << "a value of --memory for finding errors";
}

TEST(HelpTest, ListsVerbsByTaskAndFlagsOfTrainByGroup) {
  const std::string verbs = RunHere({"help"}).out;
  EXPECT_TRUE(Finds(verbs, R"(\n\ntrain and test:\n  check [^:]*\n  test [^:]*\n  train )"))
      << verbs;
  EXPECT_TRUE(Finds(verbs, R"(\n\nwork on a cluster:\n  bench-comm [^:]*\n  job )")) << verbs;
  const std::string flags = RunHere({"help", "train"}).out;
  EXPECT_TRUE(Finds(flags, R"(\n\nflags:\n  --solver=FILE )")) << flags;
  EXPECT_TRUE(Finds(
      flags,
      R"(\n\ndata:\n  --bad_records[^:]*:[^:]*\n  --limit[^\n]*\n(   [^\n]*\n)+  --local_copy)"))
      << flags;
  for (const char* group : {"what is kept and shown", "signals and time", "device and memory",
                            "ranks", "flags of every verb"}) {
    EXPECT_THAT(flags, HasSubstr(std::string("\n\n") + group + ":\n  --"));
  }
}

TEST(ColorTest, IsForTerminalsUnlessAskedFor) {
  const std::vector<std::string> wrong = {"show", "--model=/nowhere.prototxt"};
  EXPECT_THAT(RunHere(wrong).err, StartsWith("error: "));
  std::vector<std::string> colored = wrong;
  colored.push_back("--color=always");
  EXPECT_THAT(RunHere(colored).err, StartsWith("\033[31merror:\033[0m "));
  ExpectRefused({"show", "--model=x", "--color=red"}, 64,
                "--color=red: must be one of auto, always, never");
}

TEST(VersionTest, IsOneLine) {
  const Outcome outcome = RunHere({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, testing::MatchesRegex("trainer [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(UsageTest, NamesTheNearestVerb) {
  ExpectRefused({"tran"}, 64, "no verb 'tran'. Did you mean 'train'?");
  ExpectRefused({"help", "tets"}, 64, "Did you mean 'test'?");
  ExpectRefused({"xyzzy"}, 64, "no verb 'xyzzy'. 'trainer help' lists the verbs");
  ExpectRefused({"--solver=x"}, 64, "no verb given");
}

TEST(UsageTest, NamesTheNearestFlag) {
  ExpectRefused({"train", "--solvr=x"}, 64,
                "'trainer train' has no flag --solvr. "
                "Did you mean --solver?");
  ExpectRefused({"--solvr", "x", "train"}, 64, "Did you mean --solver?");
  ExpectRefused({"test", "--solver=x"}, 64, "'trainer test' has no flag --solver.");
  ExpectRefused({"train", "--xyzzy"}, 64, "'trainer help train' lists the flags");
}

TEST(UsageTest, NamesTheFlagOrFieldThatAnotherTrainersFlagMeans) {
  ExpectRefused({"predict", "--epochs=3"}, 64,
                "'trainer predict' has no flag --epochs. The length of a run is max_epoch, or "
                "max_iter in iterations");
  ExpectRefused({"train", "--solver=x", "--bs=3"}, 64, "Did you mean --batch?");
  ExpectRefused({"train", "--solver=x", "--lr"}, 64, "--lr needs a value: --lr=VALUE");
  ExpectRefused({"predict", "--lr=0.1"}, 64, "'trainer predict' has no flag --lr");
}

TEST(UsageTest, TakesAFieldOfTheSolverAsAFlag) {
  const TempFolder folder;
  std::ofstream(folder / "n.prototxt")
      << "layer { name: 'd' type: 'DummyData' top: 'x' top: 't' dummy_data_param {\n"
         "  shape { dim: 2 dim: 3 } shape { dim: 2 dim: 1 } } }\n"
         "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y'\n"
         "  inner_product_param { num_output: 1 } }\n"
         "layer { name: 'l' type: 'EuclideanLoss' bottom: 'y' bottom: 't' top: 'l' }\n";
  std::ofstream(folder / "s.prototxt")
      << "net: 'n.prototxt' base_lr: 0.5 lr_policy: 'fixed' max_iter: 9 display: 1";
  const Outcome run =
      RunHere({"train", "--solver=" + (folder / "s.prototxt"), "--lr=0.25", "--max_iter", "2",
               "--optimizer=Nesterov", "--momentum=0.5", "--snapshot_prefix=" + (folder / "s")});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("Iteration 1, lr = 0.25"));
  EXPECT_THAT(run.err, Not(HasSubstr("Iteration 2, lr")));
  EXPECT_TRUE(Exists(folder / "s_iter_2.caffemodel"));
  // The flag's value is checked like a value of the field.
  const Outcome wrong =
      RunHere({"train", "--solver=" + (folder / "s.prototxt"), "--max_iter=many"});
  EXPECT_EQ(wrong.exit_code, 64);
  EXPECT_THAT(wrong.err, HasSubstr("--set max_iter=many: 'many' is not a value of max_iter"));
}

TEST(UsageTest, RefusesMissingAndImpossibleValues) {
  ExpectRefused({"train", "--solver"}, 64, "--solver needs a value: --solver=FILE");
  ExpectRefused({"train", "--solver", "--gpu=0"}, 64, "--solver needs a value");
  ExpectRefused({"train"}, 64, "'trainer train' needs --solver=FILE");
  ExpectRefused({"train", "--solver="}, 64, "'trainer train' needs --solver=FILE");
  ExpectRefused({"test", "--model=x"}, 64, "'trainer test' needs --weights=FILE");
  ExpectRefused({"test", "--model=x", "--weights=y", "--iterations=ten"}, 64,
                "--iterations=ten: not a whole number");
  ExpectRefused({"test", "--model=x", "--weights=y", "--iterations=3x"}, 64, "not a whole number");
  ExpectRefused({"time", "--model=x", "--iterations=0"}, 64, "--iterations=0: must be from 1 to");
  ExpectRefused({"time", "--model=x", "--iterations=99999999999"}, 64, "must be from 1 to");
  ExpectRefused({"train", "--solver=x", "--stop_exit_code=256"}, 64, "must be from 0 to 255");
  ExpectRefused({"time", "--model=x", "--phase=TRIAN"}, 64, "Did you mean 'TRAIN'?");
  ExpectRefused({"train", "--solver=x", "--sigint_effect=die"}, 64,
                "--sigint_effect=die: not an effect of a signal; give stop, snapshot or none");
  ExpectRefused({"train", "--solver=x", "--logtostderr=maybe"}, 64,
                "write --logtostderr or --nologtostderr");
}

TEST(UsageTest, RefusesArgumentsThatAreNoFlags) {
  ExpectRefused({"train", "solver.prototxt", "--solver=x"}, 64,
                "unexpected argument 'solver.prototxt'");
  ExpectRefused({"train", "--solver=x", "--", "--gpu=0"}, 64, "unexpected argument '--gpu=0'");
  ExpectRefused({"dataset"}, 64,
                "needs one of: bench, check, cifar10, cifar100, convert, csv, digits, idx, images, "
                "mean, pack, pairs, split, tar, text");
  ExpectRefused({"dataset", "digit", "d"}, 64, "Did you mean 'digits'?");
  ExpectRefused({"dataset", "idx", "d"}, 64, "usage: trainer dataset idx IMAGES LABELS DB");
}

TEST(UsageTest, RefusesWhatExcludesEachOther) {
  ExpectRefused({"train", "--solver=x", "--snapshot=a", "--weights=b"}, 64,
                "--snapshot and --weights cannot both be given");
  ExpectRefused({"plan"}, 64, "needs either --solver=FILE or --model=FILE");
  ExpectRefused({"time", "--solver=x", "--model=y"}, 64,
                "needs either --solver=FILE or --model=FILE");
}

TEST(UsageTest, TakesFlagsInEverySpellingAndBeforeTheVerb) {
  for (const auto& arguments : {std::vector<std::string>{"train", "--solver=absent"},
                                {"train", "--solver", "absent"},
                                {"train", "-solver=absent"},
                                {"train", "-solver", "absent"},
                                {"--solver=absent", "train"},
                                {"-solver", "absent", "train"},
                                {"--logtostderr", "--solver", "absent", "train"},
                                {"train", "--nologtostderr", "--solver=x", "--solver=absent"},
                                {"train", "--stop-exit-code=0", "--solver=absent"}}) {
    ExpectRefused(arguments, 66, "absent");
  }
}

TEST(UsageTest, ReadsFlagsFromFilesAndTheEnvironment) {
  const TempFolder folder;
  const std::string more = folder / "more.flags", file = folder / "time.flags";
  WriteText(more, "# a comment\n\n--phase=TRIAN\n");
  WriteText(file, "caffe other\n--phase=nothing\ntrain* caffe\n--iterations=2\n--flagfile=" + more);
  ExpectRefused({"time", "--model=x", "--flagfile=" + file}, 64, "--phase=TRIAN: must be one of");
  WriteText(more, "--phase=TEST");
  ExpectRefused({"time", "--flagfile", file, "--model=absent"}, 66, "absent");
  ExpectRefused({"time", "--model=x", "--flagfile=" + (folder / "none")}, 66, "none");
  WriteText(more, "--flagfile=" + file);
  ExpectRefused({"time", "--model=x", "--flagfile=" + file}, 64, "name each other in a circle");
  ExpectRefused({"time", "--model=x", "--fromenv=phase"}, 64,
                "the environment variable FLAGS_phase is not set");
  const Outcome set = RunHere({"time", "--tryfromenv=model,phase,iterations", "--fromenv=model"},
                              {.env = {"FLAGS_model=x", "FLAGS_phase=TRIAN"}});
  EXPECT_EQ(set.exit_code, 64);
  EXPECT_THAT(set.err, HasSubstr("--phase=TRIAN: must be one of"));
}

TEST(UsageTest, FlagsAreKnownByTheirOldNamesAsWell) {
  ExpectRefused({"train", "--solver=absent", "--stage_data=auto", "--stage_keep", "--stages=auto"},
                66, "absent");
  ExpectRefused({"time", "--model=absent", "--memory=separate"}, 66, "absent");
  EXPECT_THAT(RunHere({"help", "train"}).out, Not(HasSubstr("--stage_data")));
}

TEST(UsageTest, EachTaskOfDatasetHasItsOwnFlags) {
  ExpectRefused({"dataset", "--threads", "2", "check", "absent"}, 66, "absent");
  ExpectRefused({"dataset", "digits", "d", "--quality=5"}, 64,
                "'trainer dataset digits' has no flag --quality");
  EXPECT_THAT(RunHere({"help", "dataset"}).out,
              HasSubstr("\ntasks:\n  bench     measure how fast a set is read\n"));
}

TEST(HelpTest, ManualPageAndCompletionAreHelpAsWell) {
  EXPECT_EQ(RunHere({"help", "--man"}).out, RunHere({"man"}).out);
  EXPECT_EQ(RunHere({"help", "--completion"}).out, RunHere({"completion"}).out);
}

TEST(HelpTest, TheOldNameOfPredictIsAnAlias) {
  const auto page = [](const std::string& verb) {
    const std::string text = RunHere({"help", verb}).out;
    return text.substr(text.find(':'));  // without the name
  };
  EXPECT_EQ(page("classify"), page("predict"));
  const std::vector<std::string> flags = {"--model=absent", "--weights=absent", "a.png"};
  std::vector<std::string> old_name = {"classify"}, new_name = {"predict"};
  old_name.insert(old_name.end(), flags.begin(), flags.end());
  new_name.insert(new_name.end(), flags.begin(), flags.end());
  EXPECT_EQ(RunHere(old_name).exit_code, 66);
  EXPECT_EQ(RunHere(old_name).Errors(), RunHere(new_name).Errors());
}

TEST(UsageTest, PassesFlagsOfTheLogToGlog) {
  const TempFolder folder;
  WriteText(
      folder / "net.prototxt",
      R"(layer { name: "x" type: "DummyData" top: "x" dummy_data_param { shape { dim: 1 } } })");
  const std::string model = "--model=" + (folder / "net.prototxt");
  const std::vector<std::string> command = {"time", model, "--iterations=1"};
  EXPECT_THAT(RunHere(command).err, HasSubstr("Use CPU."));
  EXPECT_THAT(RunHere({"time", model, "--iterations=1", "--minloglevel=1"}).err, IsEmpty());
  RunProgram({"time", model, "--iterations=1", "--log_dir=" + folder.path()});
  EXPECT_GE(folder.Names().size(), 2u);
}

TEST(UsageTest, ReportsThatStdoutCannotBeWritten) {
  const Outcome outcome = RunProgram({"device_query"}, {.stdout_path = "/dev/full"});
  EXPECT_EQ(outcome.exit_code, 74);
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("cannot write to the standard output")));
}

// `trainer solver | head` leaves a pipe without a reader, like this one.
TEST(OutputTest, AReaderThatLeftEndsNothingAndIsNoFault) {
  RunOptions options;
  options.launcher = {"bash", "-c", "exec 9> >(exit); wait $!; exec \"$@\" >&9", "bash"};
  for (const std::string verb : {"solver", "layers", "man", "help", "--version", "completion"}) {
    const Outcome outcome = RunProgram({verb}, options);
    EXPECT_EQ(outcome.exit_code, 0) << verb;
    EXPECT_EQ(outcome.err, "") << verb;
  }
  const Outcome checked = RunProgram({"check", "--solver=no.prototxt"}, options);
  EXPECT_EQ(checked.exit_code, 66) << "the verb's own status";
  EXPECT_THAT(checked.err, testing::Not(HasSubstr("standard output")));
}

}  // namespace
}  // namespace trainer
