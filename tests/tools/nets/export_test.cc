// trainer export, trainer pack and verbs that take a pack.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "in_process.h"
#include "job.h"
#include "support/protobuf_maps.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/memory_file.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A job with a run.
struct ExportJob : Job {
  ExportJob() { EXPECT_EQ(Train({"--run=run"}).exit_code, 0); }

  Outcome Run(const std::vector<std::string>& command) const { return RunHere(command, options()); }
  // Runs a command that must succeed.
  Outcome MustRun(const std::vector<std::string>& command) const {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome;
  }
  std::string TestOutput(const std::string& weights) const {
    return MustRun({"test", "--model=net.prototxt", "--weights=" + weights}).out;
  }
};

TEST(ExportTest, EachFormatTestsAsTheSnapshotDoes) {
  const ExportJob job;
  const std::string expected = job.TestOutput("snap_iter_20.caffemodel");
  for (const std::string name : {"w.safetensors", "w.npz", "w.h5", "w.caffemodel"}) {
    SCOPED_TRACE(name);
    EXPECT_THAT(job.MustRun({"export", "--run=run", "--out=" + name}).err,
                HasSubstr("Wrote " + name + ": 2 tensors, 7850 numbers"));
    EXPECT_EQ(job.TestOutput(name), expected);
  }
  job.MustRun({"export", "--weights=w.safetensors", "--out=again.safetensors"});
  EXPECT_EQ(ReadText(job.folder() / "again.safetensors"), ReadText(job.folder() / "w.safetensors"));
}

TEST(ExportTest, ATableGivesOtherNames) {
  const ExportJob job;
  WriteText(job.folder() / "map.txt", "ip.0 fc.weight\nip.1 fc.bias\n");
  job.MustRun({"export", "--run=run", "--names=map.txt", "--out=torch.safetensors"});
  EXPECT_THAT(ReadText(job.folder() / "torch.safetensors"),
              AllOf(HasSubstr("\"fc.weight\""), HasSubstr("\"fc.bias\"")));
  ExpectRefused(job, job.Run({"test", "--model=net.prototxt", "--weights=torch.safetensors"}), 65,
                "torch.safetensors: tensor 'fc.weight' does not have the name of a blob");
  const Outcome named = job.MustRun(
      {"test", "--model=net.prototxt", "--weights=torch.safetensors", "--names=map.txt"});
  EXPECT_EQ(named.out, job.TestOutput("snap_iter_20.caffemodel"));
  WriteText(job.folder() / "tensor_names.txt", ReadText(job.folder() / "map.txt"));
  EXPECT_EQ(job.TestOutput("torch.safetensors"), named.out);
}

TEST(ExportTest, RefusesWhatItCannotDo) {
  const ExportJob job;
  ExpectRefused(job, job.Run({"export", "--run=run", "--out=w.pt"}), 64,
                "--out=w.pt: the name must end in ");
  ExpectRefused(job, job.Run({"export", "--out=w.npz"}), 64, "'trainer export' needs ");
  ExpectRefused(
      job, job.Run({"export", "--run=run", "--weights=snap_iter_20.caffemodel", "--out=w.npz"}), 64,
      "--run and --weights cannot both be given");
  ExpectRefused(job, job.Run({"export", "--run=run", "--out=w.npz", "--opset=17"}), 64,
                "--out=w.npz: a file of weights takes no --opset; leave it out");
  ExpectRefused(job, job.Run({"export", "--run=run", "--out=w.npz", "--preprocess", "--opset=13"}),
                64, "--out=w.npz: a file of weights takes no --opset, --preprocess; leave it out");
  WriteText(job.folder() / "w.npz", "");
  ExpectRefused(job, job.Run({"export", "--run=run", "--out=w.npz"}), 73, "",
                "w.npz: the file already exists");
  WriteText(job.folder() / "bad.safetensors", "no weights");
  ExpectRefused(job, job.Run({"test", "--model=net.prototxt", "--weights=bad.safetensors"}), 65,
                "bad.safetensors: this is not a safetensors file: its header would have ");
}

TEST(PackTest, StandsForNetWeightsAndLabels) {
  TRAINER_READS_JSON();
  const ExportJob job;
  WriteText(job.folder() / "names.txt", "nil\nunit\npair\n3\n4\n5\n6\n7\n8\nnine lives\n");
  WriteText(job.folder() / "0.pgm", "P5 28 28 255\n" + std::string(28 * 28, 'x'));
  EXPECT_THAT(job.MustRun({"pack", "--run=run", "--out=unnamed.trainer"}).err,
              HasSubstr("bytes; the classes have no names: give them with --labels=FILE"));
  const Outcome packed =
      job.MustRun({"pack", "--run=run", "--labels=names.txt", "--out=m.trainer"});
  const uint64_t bytes = FileSize(job.folder() / "m.trainer");
  EXPECT_THAT(packed.err, AllOf(HasSubstr(Join("Wrote m.trainer: ", bytes, " bytes")),
                                Not(HasSubstr("no names"))));
  const Outcome of_run =
      job.MustRun({"predict", "--run=run", "--labels=names.txt", "--top=10", "0.pgm"});
  const Outcome of_pack = job.MustRun({"predict", "--model=m.trainer", "--top=10", "0.pgm"});
  EXPECT_EQ(of_pack.out, of_run.out);
  EXPECT_THAT(of_pack.out, HasSubstr("nine lives"));
  EXPECT_EQ(job.MustRun({"predict", "--run=run", "--weights=m.trainer", "--labels=names.txt",
                         "--top=10", "0.pgm"})
                .out,
            of_run.out);
  job.MustRun({"export", "--model=m.trainer", "--out=m.onnx"});
  EXPECT_THAT(ReadText(job.folder() / "m.onnx"), HasSubstr("nine lives"));
  WriteText(job.folder() / "map.txt", "ip.0 fc.weight\nip.1 fc.bias\n");
  job.MustRun({"export", "--model=m.trainer", "--names=map.txt", "--out=torch.safetensors"});
  EXPECT_THAT(ReadText(job.folder() / "torch.safetensors"), HasSubstr("\"fc.weight\""));
  EXPECT_THAT(job.MustRun({"show", "m.trainer"}).out,
              AllOf(StartsWith("net         small, 7850 parameters\n"),
                    HasSubstr("trained     finished at iteration 20 of 20"),
                    HasSubstr("classes     10 with names\n")));
  EXPECT_THAT(job.MustRun({"show", "--model=m.trainer"}).out, HasSubstr("InnerProduct"));
  job.MustRun({"time", "--model=m.trainer", "--phase=TEST", "--iterations=1"});
  job.MustRun({"check", "--model=m.trainer", "--phase=TEST"});
  EXPECT_TRUE(IsMemoryFile("m.trainer/weights.safetensors"));
  EXPECT_EQ(job.Train({"--weights=m.trainer", "--set=snapshot_prefix=\"again\""}).exit_code, 0);
  EXPECT_FALSE(IsMemoryFile("m.trainer/weights.safetensors")) << "a run keeps the pack in memory";
}

TEST(PackTest, RefusesWhatIsNoPack) {
  const ExportJob job;
  job.MustRun({"pack", "--run=run", "--out=m.trainer"});
  const std::string bytes = ReadText(job.folder() / "m.trainer");
  WriteText(job.folder() / "part.trainer", bytes.substr(0, 5000));
  ExpectRefused(job, job.Run({"show", "part.trainer"}), 65,
                "part.trainer: the archive is truncated");
  ExpectRefused(job, job.Run({"predict", "--model=part.trainer", "0.pgm"}), 65, "part.trainer: ");
  ExpectRefused(job, job.Run({"show", "run/card.json"}), 64,
                "run/card.json is not a pack of 'trainer pack'");
  ExpectRefused(job, job.Run({"show", "run"}), 64,
                "run is a folder; 'trainer status run' describes a run");
  WriteText(job.folder() / "x.onnx", "a model");
  ExpectRefused(job, job.Run({"show", "x.onnx"}), 65,
                "x.onnx: this is a model in the format ONNX; make a net and weights of it: trainer "
                "import x.onnx --out=net.prototxt");
  WriteText(job.folder() / "0.pgm", "P5 28 28 255\n" + std::string(28 * 28, 'x'));
  for (const auto& [flag, code, part] :
       {std::tuple("--mean=0.pgm", 65, "not a mean file"),
        std::tuple("--mean_value=1,2", 64, "--mean_value has 2 values"),
        std::tuple("--scale=0", 64, "--scale and --raw_scale must not be 0"),
        std::tuple("--resize=20", 64, "images of 20x20 are smaller than the net's input")}) {
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"pack", "--run=run", "--out=no.trainer", flag},
          {"export", "--run=run", "--out=no.onnx", flag}}) {
      ExpectRefused(job, job.Run(command), code, "", part);
    }
  }
  EXPECT_THAT(job.Files("no."), testing::IsEmpty());
  ExpectRefused(job, job.Run({"pack", "--run=run", "--out=m.zip"}), 64,
                "--out=m.zip: the name must end in .trainer");
  ExpectRefused(job, job.Run({"show", "net.prototxt"}), 64,
                "'trainer show': unexpected argument 'net.prototxt'. Did you mean --model=");
  const Outcome checked = job.Run({"check", "--solver=solver.prototxt", "--weights=part.trainer"});
  EXPECT_EQ(checked.exit_code, 65);
  EXPECT_THAT(checked.err + checked.out,
              AllOf(HasSubstr("part.trainer: the archive is truncated"),
                    HasSubstr("check: 1 error")));  // the rest is checked, too
  ExpectRefused(job, job.Run({"sample", "--model=net.prototxt", "--out=x.png"}), 64,
                "'trainer sample' needs --weights=FILES, or a pack as --model");
  ExpectRefused(job, job.Run({"show"}), 64, "'trainer show' needs either --model=FILE or ");
  ExpectRefused(job, job.Run({"pack", "--run=run", "--out=m.trainer"}), 73, "",
                "m.trainer: the file already exists");
}

}  // namespace
}  // namespace trainer
